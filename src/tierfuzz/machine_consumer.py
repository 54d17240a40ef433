"""The state machine with a consumer of the fleet's events: it restarts, joins late, and loses workers too."""

from __future__ import annotations

from hypothesis.stateful import initialize, rule

from tierfuzz.machine import TierMachine
from tierfuzz.program import Deregister, Fill, FleetConfig, Flush, Generate, Idle, Restart, RestartConsumer
from tierfuzz.strategies import operations as ops


class ConsumerMachine(TierMachine):
    """Set `fleet` to a configuration with a `consumer`. A class of its own: rules that are there and never
    hold would change which operations a seed gives."""

    known: Generate  # what the first late join has seen
    restarts_last = False

    @initialize(draw=ops.LATE, restarts=ops.RESTARTS)
    def first_join(self, draw: ops.LateDraw, restarts: bool) -> None:
        """Every case has a late join; some, the first among them, end with a worker that restarts."""
        self.known, self.restarts_last = self.join_late(draw), restarts

    @rule(draw=ops.LATE)
    def later_join(self, draw: ops.LateDraw) -> None:
        """Another one."""
        self.join_late(draw)

    def join_late(self, draw: ops.LateDraw) -> Generate:
        """The consumer starts over, with a replay or without. Then pages come below those that it may never
        have heard of, and all of them leave the device, those below first."""
        first, size, replay = draw
        known: Generate = ops.prime(self.config, self.name(), first)
        self.apply(known)
        self.apply(RestartConsumer(self.name(), known.worker, replay))
        self.apply(ops.longer(self.config, known, self.name(), size))
        self.apply(Fill(self.name(), known.worker, f"f-{self.name()}", share=0.5))
        self.apply(ops.again(known, self.name(), "prime"))
        self.apply(Fill(self.name(), known.worker, f"f-{self.name()}", target=known.id))
        self.apply(Idle(self.name(), known.worker))
        return known

    @rule(worker=ops.WORKERS)
    def farewell(self, worker: int) -> None:
        """A worker is deregistered, asked about, and known again after a restart of the consumer."""
        worker %= self.config.workers
        self.apply(Deregister(self.name(), worker))
        self.apply(RestartConsumer(self.name(), worker))

    @rule(worker=ops.WORKERS, kind=ops.RENEWALS)
    def renewal(self, worker: int, kind: ops.Renewal) -> None:
        """A worker loses everything: it is flushed, or restarted where that is not dear."""
        dear = self.runner.fleet.driver.dear_restarts
        self.apply((Flush if dear else kind)(self.name(), worker % self.config.workers))

    def teardown(self) -> None:
        """Every case ends with what every consumer goes through: a farewell, a flush, perhaps a restart."""
        if not self.cut_short:
            worker = self.known.worker
            self.farewell(worker)
            self.apply(Flush(self.name(), worker))
            if self.restarts_last and not self.runner.fleet.driver.dear_restarts:
                self.apply(ops.again(self.known, self.name(), "prime"))
                self.apply(Restart(self.name(), worker))
        super().teardown()


def machine_for(fleet: FleetConfig) -> type[TierMachine]:
    """The machine that suits a fleet."""
    return ConsumerMachine if fleet.consumer else TierMachine

"""The state machine with a consumer of the fleet's events: it restarts, joins late, and loses workers too."""

from __future__ import annotations

from hypothesis.stateful import rule

from tierfuzz.machine import TierMachine
from tierfuzz.program import Deregister, Fill, FleetConfig, Flush, Idle, RestartConsumer
from tierfuzz.strategies import operations as ops


class ConsumerMachine(TierMachine):
    """Set `fleet` to a configuration with a `consumer`. A class of its own: rules that are there and never
    hold would change which operations a seed gives."""

    @rule(draw=ops.LATE)
    def join_late(self, draw: ops.LateDraw) -> None:
        """The consumer starts over, with a replay or without. Then pages come below those that it may never
        have heard of, and all of them leave the device."""
        first, size, replay = draw
        known = ops.prime(self.config, self.name(), first)
        self.apply(known)
        self.apply(RestartConsumer(self.name(), known.worker, replay))
        late = ops.longer(self.config, known, self.name(), size)
        self.apply(late)
        self.apply(Fill(self.name(), late.worker, f"f-{self.name()}", target=late.id))
        self.apply(Idle(self.name(), late.worker))

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
        """Every case ends with a farewell: it is cheap, and every consumer goes through it."""
        if not self.cut_short:
            self.farewell(0)
        super().teardown()


def machine_for(fleet: FleetConfig) -> type[TierMachine]:
    """The machine that suits a fleet."""
    return ConsumerMachine if fleet.consumer else TierMachine

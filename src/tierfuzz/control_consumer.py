"""What a runner does to the consumer of a fleet's events, where the configuration names one."""

from __future__ import annotations

from collections import Counter

from tierfuzz.consumers.link import Link
from tierfuzz.fleet import Fleet
from tierfuzz.oracles.router import RouterJudge
from tierfuzz.program import ConsumerOperation, Generate, Operation, RestartConsumer
from tierfuzz.routers.registry import make_consumer
from tierfuzz.verdict import Verdict


class ConsumerControl:
    """Everything here does nothing, and says nothing, in a fleet without a consumer."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.router: RouterJudge | None = None

    def attend(self) -> None:
        """A fresh consumer hears what is published from now on."""
        config = self.fleet.config
        self.router, self.fleet.audience = None, None
        if config.consumer:
            self.router = RouterJudge(
                config, Link.of(config, make_consumer), self.fleet.driver.traits(config)
            )
            self.fleet.audience = self.router.link

    def begin(self, operation: Operation) -> None:
        """What is found from now on is found at this operation."""
        if self.router is not None:
            self.router.operation = operation.id

    def consumer(self, operation: ConsumerOperation) -> None:
        """Restart the consumer, or tell it that a rank is gone; and ask it at once."""
        if self.router is None:
            return
        if isinstance(operation, RestartConsumer):
            self.router.restart_consumer(operation.replay)
        else:
            self.router.deregister(operation.worker, operation.rank)
        self.router.rested(operation.worker)  # what was published was delivered, whatever is under way

    def asked(self, request: Generate, tokens: tuple[int, ...]) -> None:
        """A prompt is known from now on."""
        if self.router is not None:
            self.router.sent(request.namespace or "", tokens)

    def delivered(self, worker: int) -> None:
        """A worker is at rest and all that it has published was delivered: ask the consumer."""
        if self.router is not None:
            self.router.rested(worker)

    def audit_consumer(self, worker: int) -> None:
        """The worker is about to be emptied, or the case ends: ask about everything."""
        if self.router is not None:
            self.router.audit(worker)

    def router_verdicts(self) -> list[Verdict]:
        """Violations and unknowns of the consumer since the last call."""
        return self.router.take_verdicts() if self.router is not None else []

    def router_counts(self) -> tuple[Counter[str], Counter[str]]:
        """Checks that held by oracle, and what was reached."""
        return (self.router.held, self.router.reach) if self.router is not None else (Counter(), Counter())

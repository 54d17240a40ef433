"""Rules of the state machine for fleets that have a storage tier."""

from __future__ import annotations

from hypothesis.stateful import precondition, rule

from tierfuzz.machine_part import MachinePart
from tierfuzz.program import Flush
from tierfuzz.strategies import operations as ops


class StorageRules(MachinePart):
    """A part of the machine."""

    @precondition(lambda self: self.config.storage_threshold)
    @rule(draw=ops.FORKS)
    def branch_from_storage(self, draw: ops.ForkDraw) -> None:
        """Two prompts that share a part come back from storage, the second below a node that it splits.

        The first rule of a fleet with storage, so that its simplest case is made of this (see come_back).
        """
        branch, twig = ops.branch_and_twig(self.config, self.name(), draw)
        self.apply(branch)
        self.apply(twig)
        self.apply(Flush(self.name(), branch.worker))
        for request in (branch, twig):
            self.apply(ops.again(request, self.name(), "repeat"))

    @precondition(lambda self: self.config.storage_threshold)
    @rule(draw=ops.PRIMES)
    def back_from_storage(self, draw: ops.PrimeDraw) -> None:
        """A prompt that device and host have forgotten since, and storage alone still has.

        Unlike after a flush, nothing was announced as cleared. By its name it comes before every other rule:
        the simplest case of such a fleet is made of it (see TierMachine.come_back).
        """
        victim = ops.prime(self.config, self.name(), draw)
        self.apply(victim)
        self.apply(ops.fill_host(self.config, self.name(), victim.worker))
        self.apply(ops.again(victim, self.name(), "repeat"))

    @precondition(lambda self: self.sent and self.config.storage_threshold)
    @rule(draws=ops.REFETCHES)
    def refetch(self, draws: list[ops.RefetchDraw]) -> None:
        """Empty device and host, then bring earlier prompts back from storage, together, some in vain."""
        self.apply(Flush(self.name(), ops.picked(self.sent, draws[0][0]).worker))
        self.apply(ops.refetch(self.config, self.sent, self.name(), draws))

    @precondition(lambda self: self.config.storage_threshold)
    @rule(draw=ops.STORAGE)
    def storage_control(self, draw: ops.StorageDraw) -> None:
        """Empty storage, detach it, attach it again, with another write policy at times."""
        self.apply(ops.storage_control(self.config, self.name(), draw))

"""Rules of the state machine whose requests overlap: bursts and crowds."""

from __future__ import annotations

from hypothesis.stateful import precondition, rule

from tierfuzz.machine_part import MachinePart
from tierfuzz.strategies import operations as ops


class OverlapRules(MachinePart):
    """A part of the machine."""

    @rule(draw=ops.BURSTS)
    def overlap(self, draw: tuple[int, list[ops.MemberDraw]]) -> None:
        """Requests that overlap, some of them aborted."""
        self.apply(ops.burst(self.config, self.sent, self.name(), *draw))

    @precondition(lambda self: self.sent)
    @rule(draws=ops.CROWDS)
    def crowd(self, draws: list[ops.CrowdDraw]) -> None:
        """Requests that overlap and do not all fit: some wait for room, or are retracted."""
        self.apply(ops.crowd(self.config, self.sent, self.name(), draws))

    @precondition(lambda self: self.sent)
    @rule(draws=ops.CROWDS)
    def crowd_back(self, draws: list[ops.CrowdDraw]) -> None:
        """Push an earlier request off, and with it most others, then crowd: what comes is on host."""
        self.push_off(draws[0][0])
        self.apply(ops.crowd(self.config, self.sent, self.name(), draws))

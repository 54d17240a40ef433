"""What is known of one run of one program, kept so that a failure can be handed over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tierfuzz.runevents import RunEvent


@dataclass(frozen=True)
class Evidence:
    """Every event of the run, in order: operations, requests, batches, rest, verdicts (issue 3, point 5)."""

    events: tuple[RunEvent, ...] = ()


def evidence_of(tape: Iterable[RunEvent]) -> Evidence:
    """A copy of what a runner has on its tape: the newest case."""
    return Evidence(tuple(tape))

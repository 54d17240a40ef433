"""What a search may cost: runs, operations and seconds."""

from __future__ import annotations

from dataclasses import dataclass

from tierfuzz.clock import SYSTEM_CLOCK, Clock


class OutOfBudget(Exception):
    """The next run would go beyond the budget; the search stops with its best (nobody is at fault)."""


@dataclass(frozen=True)
class Limits:
    """The most that may be spent; None: no limit. `operations` are counted before they run."""

    runs: int | None = None
    operations: int | None = None
    seconds: float | None = None


class Meter:
    """Counts what is spent, and refuses the run that would go beyond the limits.

    `spent_before`: seconds that an earlier part of the same search took (a resumed one goes on counting).
    `share`: of each limit, what may be spent now; the rest is kept for what comes later.
    """

    def __init__(self, limits: Limits, clock: Clock = SYSTEM_CLOCK, spent_before: float = 0.0) -> None:
        self.limits = limits
        self.share = 1.0
        self.runs = 0
        self.operations = 0
        self._clock = clock
        self._start = clock.monotonic() - spent_before

    @property
    def seconds(self) -> float:
        """Seconds since the search began."""
        return self._clock.monotonic() - self._start

    def spend(self, operations: int) -> None:
        """One run of that many operations is about to begin; OutOfBudget says which limit forbids it."""
        self._check("runs", self.runs + 1, self.limits.runs)
        self._check("operations", self.operations + operations, self.limits.operations)
        self._check("seconds", self.seconds, self.limits.seconds)
        self.charge(operations)

    def charge(self, operations: int) -> None:
        """Count a run that has been made already, whatever the limits."""
        self.runs += 1
        self.operations += operations

    def _check(self, what: str, wanted: float, limit: float | None) -> None:
        if limit is not None and wanted > limit * self.share:
            raise OutOfBudget(f"{limit:g} {what}")

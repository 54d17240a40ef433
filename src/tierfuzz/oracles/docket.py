"""Where verdicts of one worker are collected: holds are counted, the rest is kept."""

from __future__ import annotations

from collections import Counter

from tierfuzz.verdict import Outcome, Verdict

MOST_OF_A_KIND = 20
Facts = dict[str, str | int | float | bool | None]


class Docket:
    """`held` counts checks that held, by oracle; violations beyond a bound are only counted.

    The bound is for each oracle and combination of its yes-or-no facts: what is known must not crowd out
    what is new.
    """

    def __init__(self, worker: int) -> None:
        self.worker = worker
        self.held: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._kept: list[Verdict] = []

    def holds(self, oracle: str, times: int = 1) -> None:
        """A check held."""
        self.held[oracle] += times

    def violation(
        self,
        oracle: str,
        operation: str,
        message: str,
        reasons: tuple[str, ...] = (),
        facts: Facts | None = None,
    ) -> None:
        """A check failed."""
        self._keep(Outcome.VIOLATION, oracle, operation, message, reasons, facts)

    def unknown(self, oracle: str, operation: str, message: str) -> None:
        """A check could not be made."""
        self._keep(Outcome.UNKNOWN, oracle, operation, message, (), None)

    def _keep(
        self,
        outcome: Outcome,
        oracle: str,
        operation: str,
        message: str,
        reasons: tuple[str, ...],
        facts: Facts | None,
    ) -> None:
        key = f"{outcome}:{oracle}"
        self.seen[key] += 1
        kind = f"{key}:{sorted((k, v) for k, v in (facts or {}).items() if isinstance(v, bool))}"
        self._kinds[kind] += 1
        if self._kinds[kind] <= MOST_OF_A_KIND:
            self._kept.append(Verdict(oracle, outcome, self.worker, operation, message, reasons, facts or {}))

    def check(
        self,
        ok: bool,
        oracle: str,
        operation: str,
        message: str,
        reasons: tuple[str, ...] = (),
        facts: Facts | None = None,
    ) -> None:
        """Hold or violation."""
        if ok:
            self.holds(oracle)
        else:
            self.violation(oracle, operation, message, reasons, facts)

    def take(self) -> list[Verdict]:
        """Violations and unknowns since the last call."""
        kept, self._kept = self._kept, []
        return kept

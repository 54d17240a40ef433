"""What the bench gives: a row for each planted fault and seed, the control rows, and the score."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from tierfuzz.catalogue.case import Case
from tierfuzz.errors import ExitCode

BENCH_FORMAT = 1


class BenchRow(msgspec.Struct, frozen=True):
    """One search for one planted fault. `oracles`: all that were violated, () for nothing.

    `by`: the oracle of the verdict that counts, one that the case names where there is one. `operations`,
    `seconds`: until it was found, or until the search ended. `was`, `length`: operations of the failing
    program and of what it was shrunk to (0: not shrunk); `shrink_runs`, `shrink_operations`: what that took.
    `error`: why the search ended early, or "".
    """

    case: str
    plant: str
    seed: int
    oracles: tuple[str, ...]
    by: str
    named: bool
    operations: int
    seconds: float
    was: int = 0
    length: int = 0
    shrink_runs: int = 0
    shrink_operations: int = 0
    minimal: bool | None = None
    error: str = ""

    @property
    def found(self) -> bool:
        """Something was violated."""
        return bool(self.by)


class ControlRow(msgspec.Struct, frozen=True):
    """Healthy workers in a fleet of the catalogue: nothing may be violated."""

    fleet: str
    seed: int
    cases: int
    operations: int
    oracles: tuple[str, ...]
    reached: bool

    @property
    def silent(self) -> bool:
        """Nothing was violated."""
        return not self.oracles


@dataclass
class BenchResult:
    """Rows so far; `cases`: all that were asked for, those without a plant included."""

    cases: tuple[Case, ...]
    seeds: int
    rows: list[BenchRow] = field(default_factory=list)
    controls: list[ControlRow] = field(default_factory=list)
    canary: BenchRow | None = None
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def plantable(self) -> list[Case]:
        """Cases that have a plant."""
        return [case for case in self.cases if case.plant]

    def rows_of(self, case: Case) -> list[BenchRow]:
        """The rows of a case, a seed each."""
        return [row for row in self.rows if row.case == case.id]

    def found_always(self, case: Case) -> bool:
        """Found in every seed, by an oracle that the case names."""
        rows = self.rows_of(case)
        return len(rows) == self.seeds and all(row.named for row in rows)

    @property
    def score(self) -> int:
        """Cases that were found in every seed."""
        return sum(self.found_always(case) for case in self.cases)

    @property
    def exit_code(self) -> ExitCode:
        """0: controls silent, canary and every plant found in every seed; 1: not so; 4: nothing was tried."""
        if any(not row.silent for row in self.controls):
            return ExitCode.VIOLATION
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if not self.plantable or not all(row.reached for row in self.controls):
            return ExitCode.VACUOUS
        alive = self.canary is not None and self.canary.named
        return ExitCode.HELD if alive and self.score == len(self.plantable) else ExitCode.VIOLATION


def median(values: Iterable[float]) -> float:
    """The median, 0 of nothing."""
    known = list(values)
    return statistics.median(known) if known else 0.0

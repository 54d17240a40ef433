"""What several runs of one program say together: FIXED, FAILED, FLAKY, UNPROVED or ERROR."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tierfuzz.errors import ExitCode


@dataclass
class Replayed:
    """Runs of a program, `times` of them wanted. `failed` and `held`: oracles, a set a run; `accused`: what
    was violated when the program was found, as far as that is known; `error`: what ended the runs early."""

    times: int
    accused: tuple[str, ...] = ()
    failed: list[set[str]] = field(default_factory=list)
    held: list[set[str]] = field(default_factory=list)
    error: str = ""

    def add(self, failed: set[str], held: set[str]) -> None:
        """One more run."""
        self.failed.append(failed)
        self.held.append(held)

    @property
    def unasked(self) -> str:
        """Why runs without a violation prove nothing; "" where they do."""
        asked = set().union(*self.held)
        if not asked:
            return "no check could be made"
        if self.accused and not asked & set(self.accused):
            return f"{', '.join(self.accused)} was not asked in any run"
        return ""

    @property
    def exit_code(self) -> ExitCode:
        """A violation counts whatever came after it."""
        if any(self.failed):
            return ExitCode.VIOLATION
        if self.error:
            return ExitCode.ENVIRONMENT
        return ExitCode.VACUOUS if self.unasked else ExitCode.HELD


def ending(replayed: Replayed) -> list[str]:
    """A line an oracle, or one for all."""
    runs, counts = len(replayed.failed), Counter(oracle for failed in replayed.failed for oracle in failed)
    lines = [
        f"{'FAILED' if count == runs else 'FLAKY'} {count} of {runs}: {oracle}"
        for oracle, count in counts.most_common()
    ]
    if replayed.error:
        lines.append(f"ERROR after {runs} of {replayed.times} runs: {replayed.error}")
    elif not lines and replayed.unasked:
        lines.append(f"UNPROVED: no violation in {runs} runs, but {replayed.unasked}")
    elif not lines:
        lines.append(f"FIXED: 0 of {runs} runs violated an oracle")
    return lines

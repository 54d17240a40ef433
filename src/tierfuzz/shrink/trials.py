"""Runs of candidates: n of m tries, each within the budget, nothing tried that is known already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from tierfuzz.errors import UsageError
from tierfuzz.program import Program
from tierfuzz.shrink.budget import Meter
from tierfuzz.shrink.canon import key_of
from tierfuzz.verdict import Verdict

Run = Callable[[Program], Sequence[Verdict]]


class Tried(msgspec.Struct, frozen=True, tag="tried", omit_defaults=True):
    """One run of one program: its key, its length, when it ended (seconds since the search began), and the
    violation of the oracle in question, if there was one."""

    key: str
    operations: int
    seconds: float
    verdict: Verdict | None = None


class Sample:
    """All runs of one program so far."""

    def __init__(self) -> None:
        self.runs = 0
        self.failed = 0
        self.verdict: Verdict | None = None

    def add(self, verdict: Verdict | None) -> None:
        """One more run."""
        self.runs += 1
        self.failed += verdict is not None
        self.verdict = self.verdict or verdict


class Trials:
    """Whether programs fail an oracle: `accept` of at most `tries` runs have to; stops when that is decided.

    `oracle` "" becomes that of the first violation seen. `earlier`: runs of the same search before it was
    interrupted; they count, and are not repeated. `note` is told of each run.
    """

    def __init__(
        self,
        run: Run,
        meter: Meter,
        oracle: str = "",
        accept: int = 1,
        tries: int = 1,
        earlier: Iterable[Tried] = (),
        note: Callable[[Tried], None] = lambda _: None,
    ) -> None:
        if not 1 <= accept <= tries:
            raise UsageError(f"accept {accept} of {tries} tries: expected 1 <= accept <= tries")
        self.meter = meter
        self.oracle = oracle
        self.accept = accept
        self.tries = tries
        self._run = run
        self._note = note
        self._samples: dict[str, Sample] = {}
        for tried in earlier:
            self._count(tried)
            meter.charge(tried.operations)

    def fails(self, program: Program) -> bool:
        """Whether it fails, from memory or by runs; OutOfBudget when the budget ends first."""
        while (known := self.decided(program)) is None:
            self.once(program)
        return known

    def decided(self, program: Program) -> bool | None:
        """Whether it fails, from memory alone; None when more runs are needed."""
        sample = self.sample(program)
        if sample.failed >= self.accept:
            return True
        return False if sample.failed + self.tries - sample.runs < self.accept else None

    def once(self, program: Program) -> bool:
        """Run it once, whatever is known; whether it failed."""
        self.meter.spend(len(program.operations))
        verdict = self._violation(self._run(program))
        tried = Tried(key_of(program), len(program.operations), round(self.meter.seconds, 3), verdict)
        self._count(tried)
        self._note(tried)
        return verdict is not None

    def sample(self, program: Program) -> Sample:
        """What is known of a program."""
        return self._samples.setdefault(key_of(program), Sample())

    def _count(self, tried: Tried) -> None:
        if tried.verdict is not None:
            self.oracle = self.oracle or tried.verdict.oracle
        self._samples.setdefault(tried.key, Sample()).add(tried.verdict)

    def _violation(self, verdicts: Sequence[Verdict]) -> Verdict | None:
        wanted = (v for v in verdicts if v.is_violation and self.oracle in ("", v.oracle))
        return next(wanted, None)

"""Runs of candidates: n of m tries, each within the budget, nothing tried that is known already."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence

import msgspec

from tierfuzz.defects.entry import KnownDefect
from tierfuzz.defects.known import known_defect
from tierfuzz.errors import UsageError
from tierfuzz.program import Program
from tierfuzz.shrink.budget import Meter
from tierfuzz.shrink.canon import key_of
from tierfuzz.shrink.places import position_of
from tierfuzz.verdict import Verdict

MOST_TRIES = 5
FIRM = (3, 3)
MISSED = 0.1  # how often a program that fails may be taken for one that passes
Run = Callable[[Program], Sequence[Verdict]]


def tries_for(failed: int, runs: int) -> int:
    """How often to try what fails `failed` of `runs` times, to miss few failures; 1..MOST_TRIES."""
    passes = 1 - failed / runs
    return next((n for n in range(1, MOST_TRIES) if passes**n <= MISSED), MOST_TRIES)


class Tried(msgspec.Struct, frozen=True, tag="tried", omit_defaults=True):
    """One run of one program: its key, its length, when it ended (seconds since the search began).

    `verdict`: the violation of the oracle in question, if there was one; `at`: the index of its operation;
    `defect`: the known defect that it is, or "".
    """

    key: str
    operations: int
    seconds: float
    verdict: Verdict | None = None
    at: int | None = None
    defect: str = ""


class Sample:
    """All runs so far of one program, and of others that are the same but for names (canon).

    `verdict`: the last violation; `at`: the index of its operation, whatever its name is.
    """

    def __init__(self) -> None:
        self.runs = 0
        self.failed = 0
        self.verdict: Verdict | None = None
        self.at: int | None = None

    def add(self, tried: Tried) -> None:
        """One more run."""
        self.runs += 1
        if tried.verdict is not None:
            self.failed += 1
            self.verdict, self.at = tried.verdict, tried.at


class Trials:
    """Whether programs fail an oracle: `accept` of at most `tries` runs have to; stops when that is decided.

    `tries` 0: as many as it takes, by how often the original fails (tries_for); until then MOST_TRIES.

    `oracle` "" becomes that of the first violation seen, of those that no known defect explains if there are
    some; what fails by a known defect instead of by a new one (or the other way round) passes. `earlier`:
    runs of the same search before it was interrupted; they count, and are not repeated. `note` is told of
    each run. `known`: defects besides those that come with tierfuzz.
    """

    def __init__(
        self,
        run: Run,
        meter: Meter,
        oracle: str = "",
        accept: int = 1,
        tries: int = 0,
        earlier: Iterable[Tried] = (),
        note: Callable[[Tried], None] = lambda _: None,
        known: Sequence[KnownDefect] = (),
    ) -> None:
        self.adapts = tries == 0  # and accept may rise, see firmer()
        tries = tries or max(MOST_TRIES, accept)
        if not 1 <= accept <= tries:
            raise UsageError(f"accept {accept} of {tries} tries: expected 1 <= accept <= tries")
        self.meter = meter
        self.oracle = oracle
        self.defect: str | None = (
            None  # known defect that the violation is, "" for a new one; None: not seen yet
        )
        self.accept = accept
        self.tries = tries
        self._run = run
        self._note = note
        self._known = known
        self._samples: dict[str, Sample] = {}
        self._earlier: dict[str, deque[Tried]] = defaultdict(deque)
        for tried in earlier:
            self._earlier[tried.key].append(tried)

    def fails(self, program: Program) -> bool:
        """Whether it fails, from memory or by runs; OutOfBudget when the budget ends first."""
        while (known := self.decided(program)) is None:
            self.once(program)
        return known

    def look(self) -> None:
        """It is not known how often the original fails: try often, unless that was given."""
        if self.adapts:
            self.tries = max(MOST_TRIES, self.accept)

    def adapt(self, failed: int, runs: int) -> None:
        """The original fails that often: decide how often to try, unless that was given."""
        if self.adapts:
            self.tries = max(self.accept, tries_for(failed, runs))

    def firmer(self) -> None:
        """What was found is flakier than it seemed: three of three runs have to fail from now on."""
        self.adapts, self.accept, self.tries = False, *FIRM

    def decided(self, program: Program) -> bool | None:
        """Whether it fails, from memory alone; None when more runs are needed."""
        sample = self.sample(program)
        if sample.failed >= self.accept:
            return True
        return False if sample.failed + self.tries - sample.runs < self.accept else None

    def once(self, program: Program) -> bool:
        """Run it once more, whatever is known (or take the run of before); whether it failed."""
        if made := self._earlier[key_of(program)]:
            self.meter.charge(made[0].operations)
            self._count(made[0])
            return made.popleft().verdict is not None
        self.meter.spend(len(program.operations))
        verdicts = self._run(program)
        tried = Tried(key_of(program), len(program.operations), round(self.meter.seconds, 3))
        violations = [(self.defect_of(v, program), v) for v in verdicts if v.is_violation]
        wanted = [(defect, v) for defect, v in violations if self._is_wanted(defect, v)]
        if wanted:
            defect, verdict = min(wanted, key=lambda pair: pair[0] != "")
            at = position_of(program.operations, verdict.operation)
            tried = msgspec.structs.replace(tried, verdict=verdict, at=at, defect=defect)
        self._count(tried)
        self._note(tried)
        return bool(wanted)

    def _is_wanted(self, defect: str, verdict: Verdict) -> bool:
        return self.oracle in ("", verdict.oracle) and self.defect in (None, defect)

    def defect_of(self, verdict: Verdict, program: Program) -> str:
        """The known defect that a violation is, or ""."""
        return known_defect(verdict, program.fleet, self._known)

    def looks_for(self, verdict: Verdict, defect: str) -> None:
        """Only violations like this one count from now on."""
        if self.defect is None:
            self.oracle, self.defect = self.oracle or verdict.oracle, defect

    def sample(self, program: Program) -> Sample:
        """What is known of a program."""
        return self._samples.setdefault(key_of(program), Sample())

    def _count(self, tried: Tried) -> None:
        if tried.verdict is not None:
            self.looks_for(tried.verdict, tried.defect)
        self._samples.setdefault(tried.key, Sample()).add(tried)

"""The search for a smaller program that still fails: guesses, ddmin, simpler values, a final check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from tierfuzz.program import Operation, Program
from tierfuzz.shrink import fewer, passes
from tierfuzz.shrink.budget import OutOfBudget
from tierfuzz.shrink.ddmin import ddmin, one_by_one
from tierfuzz.shrink.guess import guesses, truncated
from tierfuzz.shrink.places import position_of, with_operations
from tierfuzz.shrink.repair import repaired
from tierfuzz.shrink.result import ShrinkResult
from tierfuzz.shrink.trials import Trials
from tierfuzz.verdict import Verdict

KEPT_FOR_CHECKS = 0.2  # of the budget
Step = Callable[[str, Program], None]


class Search:
    """go() looks for a smaller program; result() says what was found, also after it was interrupted.

    `best` is None until a run has failed; `stopped` says that the budget was not enough, or nothing. `step`
    is told of each pass that begins and each smaller program. `same_fleet`: try no other configuration of
    the workers, because to start one is dear.
    """

    def __init__(
        self,
        program: Program,
        trials: Trials,
        step: Step = lambda _name, _best: None,
        *,
        same_fleet: bool = False,
    ) -> None:
        self.trials = trials
        self.best: Program | None = None
        self._trail: list[Program] = []  # every best
        self._original = program
        self._step = step
        self._same_fleet = same_fleet
        self._name = ""
        self.stopped = ""

    @property
    def current(self) -> Program:
        """The best so far, or the original."""
        return self.best or self._original

    def go(self, verdict: Verdict | None = None) -> None:
        """`verdict`: a violation that was seen of the program; without one it runs first."""
        with self._within(1 - KEPT_FOR_CHECKS):
            verdict = self._look() if verdict is None else self._believe(verdict)
            if verdict is not None and self._guess(verdict):
                self._smaller()
                self._confirm()
        if self._is_flaky and self.trials.adapts and self.trials.tries == 1:
            with self._within(1 - KEPT_FOR_CHECKS):
                self._again_firmly()
        with self._within(1.0):
            if self.best is not None:
                self._check()

    @contextmanager
    def _within(self, share: float) -> Iterator[None]:
        """That share of the budget; what is done inside ends with it."""
        self.trials.meter.share = share
        try:
            yield
        except OutOfBudget as error:
            self.stopped = f"the budget of {error} was not enough"

    def attempt(self, candidate: Program) -> bool:
        """Whether it fails too, once repaired; then it is the best. What has no operations passes."""
        candidate = with_operations(candidate, repaired(candidate.operations))
        if self._same_fleet and candidate.fleet != self._original.fleet:
            return False
        if not candidate.operations or not self.trials.fails(candidate):
            return False
        if candidate != self.best:
            self.best = candidate
            self._trail.append(candidate)
            self._step(self._name, candidate)
        return True

    def begin(self, name: str) -> None:
        """A pass of that name begins."""
        self._name = name
        self._step(name, self.current)

    # passes ----------------------------------------------------------------------------------------
    def _look(self) -> Verdict | None:
        self.begin("run")
        self.trials.look()
        if not self.attempt(self._original):
            return None
        sample = self.trials.sample(self.current)
        self.trials.adapt(sample.failed, sample.runs)
        return self.verdict

    def _believe(self, verdict: Verdict) -> Verdict:
        self.trials.looks_for(verdict, self.trials.defect_of(verdict, self._original))
        self.trials.adapt(verdict.seen, verdict.tries)
        return verdict

    def _guess(self, verdict: Verdict) -> bool:
        self.begin("guess")
        candidates = list(guesses(self._original, verdict))
        if not any(self.attempt(candidate) for candidate in candidates):
            if not self.trials.adapts or self._look() is None:  # flakier than the verdict says
                return False
            any(self.attempt(candidate) for candidate in candidates)
        self.attempt(truncated(self.current, self.verdict))
        return True

    def _fewer_operations(self, how: Callable[..., tuple[Operation, ...]]) -> None:
        self.begin("operations")
        how(self.current.operations, self._fails_with)

    def _fails_with(self, operations: Sequence[Operation]) -> bool:
        return self.attempt(with_operations(self.current, operations))

    def _smaller(self) -> None:
        self._fewer_operations(ddmin)
        passes.simplify(self)

    def _confirm(self) -> None:
        """It fails once more than it had to."""
        self.begin("check")
        sample = self.trials.sample(self.current)
        while sample.runs <= self.trials.tries:
            self.trials.once(self.current)

    @property
    def _is_flaky(self) -> bool:
        sample = self.trials.sample(self.current)
        return 0 < sample.failed < sample.runs

    def _again_firmly(self) -> None:
        """From the newest program that fails firmly, or with what there is, if none does.

        What a worker keeps from one run to the next (a fault that counts, say) makes a small program fail by
        chance; a larger one may fail each time.
        """
        self.begin("flaky")
        self.trials.firmer()
        flaky, trail = self.best, [self._original, *self._trail]
        for back in (1, 2, 4, 8, len(trail)):
            if back <= len(trail) and self.attempt(trail[-back]):
                self._smaller()
                self._confirm()
                return
        self.best = flaky

    def _check(self) -> None:
        """Every single removal passes; the result fails once more."""
        self.begin("check")
        self._fewer_operations(one_by_one)
        self._confirm()

    # what was found --------------------------------------------------------------------------------
    @property
    def verdict(self) -> Verdict:
        """The violation of the best program, by the names of this program."""
        sample, operations = self.trials.sample(self.current), self.current.operations
        verdict = sample.verdict
        assert verdict is not None
        if sample.at is None or position_of(operations, verdict.operation) == sample.at:
            return verdict
        return msgspec.structs.replace(verdict, operation=operations[sample.at].id)

    def result(self, stopped: str = "") -> ShrinkResult | None:
        """The best program, or None when no run has failed. `stopped`: what interrupted go()."""
        if self.best is None:
            return None
        sample, meter = self.trials.sample(self.best), self.trials.meter
        unchecked = tuple(self._unchecked(self.best))
        return ShrinkResult(
            program=self.best,
            verdict=self.verdict,
            was=len(self._original.operations),
            runs=meter.runs,
            operations=meter.operations,
            seconds=round(meter.seconds, 3),
            minimal=None if unchecked else not any(self._removals_that_failed(self.best)),
            unchecked=unchecked,
            failed=sample.failed,
            tried=sample.runs,
            stopped=stopped or self.stopped,
        )

    def _unchecked(self, best: Program) -> Iterable[str]:
        if self.trials.sample(best).runs <= self.trials.tries:
            yield "whether it fails once more"
        for operation, rest in fewer.removals(best):
            if rest.operations and self.trials.decided(rest) is None:
                yield f"whether it fails without {operation.id}"

    def _removals_that_failed(self, best: Program) -> Iterable[bool]:
        return (self.trials.sample(rest).failed > 0 for _, rest in fewer.removals(best))

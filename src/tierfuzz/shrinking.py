"""Shrink programs on live workers: one fleet reused, others started while they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tierfuzz.clock import SYSTEM_CLOCK, Clock
from tierfuzz.defects.entry import KnownDefect
from tierfuzz.engines.registry import driver_of
from tierfuzz.errors import EnvironmentFailure
from tierfuzz.evidence import Evidence, evidence_of
from tierfuzz.fleet import Fleet, Worker
from tierfuzz.program import FleetConfig, Program
from tierfuzz.runevents import Dispatcher, Listener, ShrinkStep
from tierfuzz.runner import Runner
from tierfuzz.shrink.budget import Limits, Meter
from tierfuzz.shrink.result import ShrinkResult
from tierfuzz.shrink.search import Search
from tierfuzz.shrink.trials import Trials, Tried
from tierfuzz.verdict import Verdict

MODEST = Limits(runs=60, operations=600, seconds=20.0)


@dataclass(frozen=True)
class ShrinkConfig:
    """`accept` of at most `tries` runs have to fail (0: by how often the original does); `oracle` "": the
    first that is violated; `known`: defects besides those that come with tierfuzz."""

    limits: Limits = MODEST
    accept: int = 1
    tries: int = 0
    oracle: str = ""
    known: tuple[KnownDefect, ...] = ()


@dataclass(frozen=True)
class Ran:
    """One run of a program: its violations, and what is known of the run."""

    program: Program
    verdicts: list[Verdict]
    evidence: Evidence

    def violates(self, oracle: str) -> bool:
        """This run violated the oracle."""
        return any(verdict.oracle == oracle for verdict in self.verdicts)


@dataclass(frozen=True)
class Shrunk:
    """What a search gave, and a run of its program; None where that was made before a search was killed."""

    result: ShrinkResult
    ran: Ran | None


class FleetRuns:
    """Runs programs on the fleet that it is given, or on one of its own: at most one of those at a time.

    `last` is the last run. Candidates are not told to the listeners of a campaign: they are no cases of it.
    """

    def __init__(self, logs: Path, fleet: Fleet | None = None) -> None:
        self._logs = logs
        self._given = Runner(fleet) if fleet is not None else None
        self._own: Runner | None = None
        self._started = 0
        self.last: Ran | None = None

    def __enter__(self) -> FleetRuns:
        """Nothing is started before it is needed."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what was started; keep its logs when something went wrong."""
        self.close(keep_logs=kind is not None and issubclass(kind, Exception))

    def run(self, program: Program) -> list[Verdict]:
        """The program on empty workers of its configuration."""
        runner = self._runner(program.fleet)
        verdicts = list(runner.run(program))
        violations = [verdict for verdict in verdicts if verdict.is_violation]
        self.last = Ran(program, violations, evidence_of(runner.tape))
        return verdicts

    def _runner(self, config: FleetConfig) -> Runner:
        for runner in (self._given, self._own):
            if runner is not None and runner.fleet.config == config:
                return runner
        self.close()
        fleet = Fleet(config, self._logs / f"shrink-{self._started}")
        self._started += 1
        fleet.start()
        self._own = Runner(fleet)
        return self._own

    @property
    def own_workers(self) -> list[Worker]:
        """Workers of the fleet that was started, if there is one now."""
        return list(self._own.fleet.workers) if self._own is not None else []

    def close(self, keep_logs: bool = False) -> None:
        """End the fleet that was started, if there is one."""
        own, self._own = self._own, None
        if own is not None:
            own.fleet.stop(keep_logs)


def shrink(
    program: Program,
    runs: FleetRuns,
    config: ShrinkConfig,
    verdict: Verdict | None = None,
    *,
    listeners: Dispatcher | Iterable[Listener] = (),
    earlier: Iterable[Tried] = (),
    note: Callable[[Tried], None] = lambda _: None,
    clock: Clock = SYSTEM_CLOCK,
) -> Shrunk | None:
    """The smallest program found that fails the same oracle; None when no run failed. EnvironmentFailure when
    the budget ends, or a worker is lost, before one has.

    `verdict`: a violation that was seen of it. `earlier`, `note`: a journal of the same search. Ctrl-C and a
    worker that cannot be reached end the search: the best so far is given, and `stopped` says why.
    """
    told = listeners if isinstance(listeners, Dispatcher) else Dispatcher(list(listeners))
    made = list(earlier)
    meter = Meter(config.limits, clock, made[-1].seconds if made else 0.0)
    steps = _Steps(told, len(program.operations), meter, runs)

    def noted(tried: Tried) -> None:
        note(tried)
        steps.tell()

    oracle = config.oracle or (verdict.oracle if verdict is not None else "")
    trials = Trials(runs.run, meter, oracle, config.accept, config.tries, made, noted, config.known)
    dear = driver_of(program.fleet).dear_restarts
    search = Search(program, trials, steps.step, same_fleet=dear)
    stopped = ""
    try:
        search.go(verdict)
    except KeyboardInterrupt:
        if search.best is None:
            raise
        stopped = "interrupted"
    except EnvironmentFailure as error:
        if search.best is None:
            raise
        stopped = str(error).split("\n")[0]
    if search.best is None and search.stopped:
        raise EnvironmentFailure(f"nothing has failed yet, and {search.stopped}; give a larger budget")
    result = search.result(stopped)
    return Shrunk(result, steps.ran_of(result)) if result is not None else None


class _Steps:
    """Tells listeners where a search stands (pass, smaller program, run), and keeps the best run."""

    def __init__(self, told: Dispatcher, was: int, meter: Meter, runs: FleetRuns) -> None:
        self._told = told
        self._meter = meter
        self._runs = runs
        self._name, self._was, self._now = "", was, was
        self._ran: Ran | None = None

    def step(self, name: str, best: Program) -> None:
        self._name, self._now = name, len(best.operations)
        if (last := self._runs.last) is not None and last.program == best:
            self._ran = last
        self.tell()

    def tell(self) -> None:
        self._told.emit(ShrinkStep(self._name, self._was, self._now, self._meter.runs))

    def ran_of(self, result: ShrinkResult) -> Ran | None:
        """The last run of the result that failed, as far as it is known."""
        for ran in (self._runs.last, self._ran):
            if ran is not None and ran.program == result.program and ran.violates(result.verdict.oracle):
                return ran
        return None

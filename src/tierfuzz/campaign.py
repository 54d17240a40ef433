"""A campaign: the machine under each policy for a number of examples, counted, not stopped by one finding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.stateful import run_state_machine_as_test

from tierfuzz.campaign_results import CampaignResult, Failure, Known, PolicyResult, required_reach
from tierfuzz.campaign_shrink import shrink_failures
from tierfuzz.clock import SYSTEM_CLOCK
from tierfuzz.defects.entry import KnownDefect
from tierfuzz.defects.known import explained_by, known_defect, unseen
from tierfuzz.errors import TierfuzzError
from tierfuzz.evidence import Evidence, evidence_of
from tierfuzz.fleet import Fleet
from tierfuzz.machine import TierMachine
from tierfuzz.machine_consumer import machine_for
from tierfuzz.program import FleetConfig, Operation, WritePolicy
from tierfuzz.runevents import CaseEnded, CaseStarted, Dispatcher, Listener, RunEnded, RunStarted
from tierfuzz.runner import Runner
from tierfuzz.sensitivity import prove_sensitivity
from tierfuzz.shrink.budget import Limits
from tierfuzz.shrinking import ShrinkConfig
from tierfuzz.verdict import Verdict

ENOUGH_FAILING_CASES = 8
ENOUGH_STUCK_CASES = 3
STUCK = ("hang", "crash")

__all__ = ["CampaignConfig", "CampaignResult", "Failure", "Known", "PolicyResult", "run_campaign"]


@dataclass(frozen=True)
class CampaignConfig:
    """What to run. `steps`: operations a case; `seed` decides everything but the workers' own timing.

    `shrink`: the most that may be spent to make one failing case small; None: leave them as they are.
    `stop`: asked after every case, of what was found so far; None: after ENOUGH_FAILING_CASES.
    `known`: defects that do not fail the campaign; they are counted and reported all the same.
    """

    fleet: FleetConfig
    policies: tuple[WritePolicy, ...]
    max_examples: int = 25
    steps: int = 30
    seed: int = 0
    log_dir: Path = Path("tierfuzz-logs")
    database: Path | None = None
    repeats: int = 3
    shrink: Limits | None = None
    known: tuple[KnownDefect, ...] = ()
    stop: Callable[[PolicyResult], bool] | None = None


class _EnoughFound(BaseException):
    """Ends a campaign from inside a case; Hypothesis does not catch it."""


class _Broken(BaseException):
    """Carries an error of the environment past Hypothesis, which would call the run flaky instead."""

    def __init__(self, error: TierfuzzError) -> None:
        super().__init__(str(error))
        self.error = error


def run_campaign(config: CampaignConfig, listeners: Sequence[Listener] = ()) -> CampaignResult:
    """Run every policy in turn. Ctrl-C ends the campaign with what there is."""
    results: list[PolicyResult] = []
    dispatcher = Dispatcher(listeners)
    for policy in config.policies:
        fleet_config = replace_policy(config.fleet, policy)
        results.append(_run_policy(config, fleet_config, dispatcher))
        if results[-1].interrupted:
            break
    fleets = [replace_policy(config.fleet, result.policy) for result in results]
    seen = {name for result in results for name in result.known}
    return CampaignResult(results, dispatcher.broken, unseen(config.known, fleets, seen))


def replace_policy(fleet: FleetConfig, policy: WritePolicy) -> FleetConfig:
    """The same fleet under another policy."""
    return msgspec.structs.replace(fleet, policy=policy)


def _run_policy(config: CampaignConfig, fleet_config: FleetConfig, dispatcher: Dispatcher) -> PolicyResult:
    result = PolicyResult(fleet_config.policy, required=required_reach(fleet_config))
    started = SYSTEM_CLOCK.monotonic()
    dispatcher.emit(RunStarted(fleet_config, config.max_examples))
    logs = config.log_dir / fleet_config.policy
    try:
        with Fleet(fleet_config, logs) as fleet:
            prove_sensitivity(fleet)
            find(config, Runner(fleet, dispatcher), result)
            result.seconds = SYSTEM_CLOCK.monotonic() - started
            if config.shrink is not None:
                shrinking = ShrinkConfig(config.shrink, known=config.known)
                shrink_failures(result, fleet, shrinking, dispatcher, logs)
    except KeyboardInterrupt:
        result.interrupted = True
        result.seconds = result.seconds or SYSTEM_CLOCK.monotonic() - started
    except _Broken as broken:
        raise broken.error from broken
    dispatcher.emit(RunEnded(result.interrupted))
    return result


def find(config: CampaignConfig, runner: Runner, result: PolicyResult) -> None:
    """All cases on a running fleet, or enough of them, into `result`."""
    with suppress(_EnoughFound):
        _run_machine(_machine(runner, result, config), config)


def _run_machine(machine: type[TierMachine], config: CampaignConfig) -> None:
    database = DirectoryBasedExampleDatabase(config.database) if config.database else None
    run_state_machine_as_test(
        seed(config.seed)(machine),
        settings=settings(
            max_examples=config.max_examples,
            stateful_step_count=config.steps,
            deadline=None,
            database=database,
            derandomize=False,
            phases=(Phase.generate,),
            print_blob=False,
            report_multiple_bugs=False,
            verbosity=Verbosity.quiet,
            suppress_health_check=list(HealthCheck),
        ),
    )


def _machine(runner: Runner, result: PolicyResult, config: CampaignConfig) -> type[TierMachine]:
    """A machine that records into `result` and raises nothing."""

    class Campaign(machine_for(runner.fleet.config)):  # type: ignore[misc]
        fleet = runner.fleet.config
        repeats = config.repeats

        def acquire(self) -> Runner:
            return runner

        def begin(self) -> None:
            super().begin()
            runner.dispatcher.emit(CaseStarted(result.examples + 1))

        def apply(self, operation: Operation) -> None:
            try:
                super().apply(operation)
            except TierfuzzError as error:
                raise _Broken(error) from error

        def teardown(self) -> None:
            try:
                super().teardown()
            except TierfuzzError as error:
                raise _Broken(error) from error

        def conclude(self, verdicts: list[Verdict]) -> None:
            _record(self, result, verdicts, config.known)
            runner.dispatcher.emit(CaseEnded(result.examples, dict(runner.held), dict(runner.reach)))
            if (config.stop or _enough)(result):
                raise _EnoughFound

    return Campaign


def _record(
    machine: TierMachine, result: PolicyResult, verdicts: list[Verdict], accepted: tuple[KnownDefect, ...]
) -> None:
    result.examples += 1
    result.operations += len(machine.done)
    result.requests = machine.runner.requests
    result.reach.update(machine.runner.reach)
    result.held.update(machine.runner.held)
    failed = [verdict for verdict in verdicts if verdict.is_violation]
    result.violated.update(verdict.oracle for verdict in failed)
    result.unknown.update(verdict.oracle for verdict in verdicts if not verdict.is_violation)
    named = [(verdict, _name(verdict, machine.config, accepted, result)) for verdict in failed]
    evidence = evidence_of(machine.runner.tape)  # before any of it is run again
    _note_known(machine, result, named, evidence)
    if unexplained := [verdict for verdict, defect in named if not defect]:
        seen = {verdict.oracle for failure in result.failures for verdict in failure.verdicts}
        fresh = any(verdict.oracle not in seen and verdict.oracle not in STUCK for verdict in unexplained)
        failure = Failure(unexplained, machine.program, evidence)
        result.failures.append(failure)  # now: Ctrl-C while it is confirmed does not undo it
        if fresh:
            failure.verdicts = machine.confirm(unexplained)


def _name(
    verdict: Verdict, fleet: FleetConfig, accepted: tuple[KnownDefect, ...], result: PolicyResult
) -> str:
    """The known defect that it is, accepted or not; "" for a new one."""
    if (entry := explained_by(verdict, fleet, accepted)) is not None:
        result.accepted[entry.id] = entry
    return known_defect(verdict, fleet, accepted)


def _note_known(
    machine: TierMachine, result: PolicyResult, named: list[tuple[Verdict, str]], evidence: Evidence
) -> None:
    """Count known defects once a case; the first case of each is kept, and repeated for its "k of n"."""
    for defect in sorted({name for _, name in named if name}):
        verdicts = [verdict for verdict, name in named if name == defect]
        if defect in result.known:
            result.known[defect].cases += 1
        else:
            known = result.known[defect] = Known(1, Failure(verdicts, machine.program, evidence))
            known.failure.verdicts = machine.confirm(verdicts)


def _enough(result: PolicyResult) -> bool:
    """Findings are not made better by repeating them for ever."""
    stuck = sum(any(v.oracle in STUCK for v in failure.verdicts) for failure in result.failures)
    return len(result.failures) >= ENOUGH_FAILING_CASES or stuck >= ENOUGH_STUCK_CASES

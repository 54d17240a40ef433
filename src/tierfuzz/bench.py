"""The bench: plants each fault of the catalogue, lets the machine look for it, and shrinks what it finds."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from tierfuzz.bench_results import BenchResult, BenchRow, ControlRow
from tierfuzz.campaign import CampaignConfig, find
from tierfuzz.campaign_results import Failure, PolicyResult, required_reach
from tierfuzz.catalogue.case import DEFAULT_FLEET, Case
from tierfuzz.clock import SYSTEM_CLOCK
from tierfuzz.errors import EnvironmentFailure
from tierfuzz.fleet import Fleet
from tierfuzz.program import FleetConfig
from tierfuzz.runner import Runner
from tierfuzz.shrink.budget import Limits
from tierfuzz.shrinking import FleetRuns, ShrinkConfig, Shrunk, shrink
from tierfuzz.verdict import Verdict

MOST_CASES = 1000  # the budget in seconds ends a search
START = "start"  # what stands in a row for a fleet that its fault did not let start
SHRINK = Limits(runs=80, operations=800, seconds=20.0)
CANARY = Case(
    id="canary",
    title="Fires in about one case of a hundred: a bench that does not find it looks at nothing",
    source="",
    component="accounting",
    observables=("LEDGER",),
    plant="canary",
    oracles=("phantom-hit", "ledger-accounting"),
    fleet=replace(DEFAULT_FLEET, workers=1, device_tokens=512),
)
CANARY_PATIENCE = 6  # times the budget of another search
Note = Callable[[BenchRow | ControlRow], None]


@dataclass(frozen=True)
class BenchConfig:
    """`budget_s`: seconds a search; `shrink_seeds`: of how many seeds the finds are shrunk; `control_cases`:
    cases of healthy workers in each fleet."""

    seeds: int = 3
    budget_s: float = 20.0
    steps: int = 30
    shrink_seeds: int = 1
    control_cases: int = 6
    limits: Limits = SHRINK


def run_bench(cases: Sequence[Case], config: BenchConfig, note: Note = lambda _: None) -> BenchResult:
    """Controls first, then every case with every seed. Ctrl-C ends it with what there is."""
    result = BenchResult(tuple(cases), config.seeds)
    started = SYSTEM_CLOCK.monotonic()
    try:
        for fleet in distinct_fleets(result.plantable):
            result.controls.append(control(fleet, 0, config))
            note(result.controls[-1])
        result.canary = look_for(CANARY, 0, _patient(config))
        note(result.canary)
        for case in result.plantable:
            for seed in range(config.seeds):
                result.rows.append(look_for(case, seed, config))
                note(result.rows[-1])
    except KeyboardInterrupt:
        result.interrupted = True
    result.seconds = SYSTEM_CLOCK.monotonic() - started
    return result


def _patient(config: BenchConfig) -> BenchConfig:
    return dataclasses.replace(config, budget_s=CANARY_PATIENCE * config.budget_s, shrink_seeds=0)


def distinct_fleets(cases: Sequence[Case]) -> list[FleetConfig]:
    """The fleets that the cases need, each once."""
    return list(dict.fromkeys(case.fleet for case in cases))


def control(fleet: FleetConfig, seed: int, config: BenchConfig) -> ControlRow:
    """Healthy workers: what the machine says of them."""
    result = PolicyResult(fleet.policy, required=required_reach(fleet))
    with tempfile.TemporaryDirectory(prefix="tierfuzz-bench-") as logs, Fleet(fleet, Path(logs)) as live:
        search = CampaignConfig(fleet, (fleet.policy,), config.control_cases, config.steps, seed, repeats=1)
        find(search, Runner(live), result)
    return ControlRow(
        described(fleet),
        seed,
        result.examples,
        result.operations,
        tuple(sorted(result.violated)),
        not result.vacuous or fleet.host_ratio < 1,
    )


def described(fleet: FleetConfig) -> str:
    """What a fleet has that others have not, in words."""
    plain = FleetConfig()
    fields = (name for name in fleet.__struct_fields__ if getattr(fleet, name) != getattr(plain, name))
    return ", ".join([fleet.policy, *(f"{n}={getattr(fleet, n)}" for n in fields if n != "policy")])


def look_for(case: Case, seed: int, config: BenchConfig) -> BenchRow:
    """Plant, search within the budget, and shrink what the case names."""
    fleet = replace(case.fleet, plants=(case.plant,))
    started = SYSTEM_CLOCK.monotonic()
    result = PolicyResult(fleet.policy, required=required_reach(fleet))

    def stop(so_far: PolicyResult) -> bool:
        late = SYSTEM_CLOCK.monotonic() - started > config.budget_s
        return late or _decisive(case, so_far) is not None

    search = CampaignConfig(fleet, (fleet.policy,), MOST_CASES, config.steps, seed, repeats=1, stop=stop)
    try:
        with tempfile.TemporaryDirectory(prefix="tierfuzz-bench-") as logs, Fleet(fleet, Path(logs)) as live:
            find(search, Runner(live), result)
            row = _row(case, seed, result, SYSTEM_CLOCK.monotonic() - started)
            found = _decisive(case, result)
            if found is None or seed >= config.shrink_seeds:
                return row
            return _with_shrunk(row, _shrunk(*found, live, Path(logs), config.limits))
    except EnvironmentFailure as error:
        return _stopped(case, seed, result, error, SYSTEM_CLOCK.monotonic() - started)


def _decisive(case: Case, result: PolicyResult) -> tuple[Failure, Verdict] | None:
    """The first violation of an oracle that the case names."""
    for failure in result.failures:
        for verdict in failure.verdicts:
            if verdict.oracle in case.oracles:
                return failure, verdict
    return None


def _row(case: Case, seed: int, result: PolicyResult, seconds: float) -> BenchRow:
    found = _decisive(case, result)
    oracles = tuple(sorted(result.violated))
    by = found[1].oracle if found else next(iter(oracles), "")
    was = len(found[0].program.operations) if found else 0
    return BenchRow(
        case.id, case.plant, seed, oracles, by, found is not None, result.operations, round(seconds, 3), was
    )


def _stopped(
    case: Case, seed: int, result: PolicyResult, error: EnvironmentFailure, seconds: float
) -> BenchRow:
    """The environment failed: a fault that does not let workers start is found by that, others are not."""
    row = _row(case, seed, result, seconds)
    at_start = not result.examples and START in case.oracles
    what = str(error).split("\n")[0]
    if at_start:
        return replace(row, oracles=(START,), by=START, named=True, error=what)
    return replace(row, error=what)


def _shrunk(failure: Failure, verdict: Verdict, live: Fleet, logs: Path, limits: Limits) -> Shrunk | None:
    with FleetRuns(logs, live) as runs:
        return shrink(failure.program, runs, ShrinkConfig(limits), verdict)


def _with_shrunk(row: BenchRow, shrunk: Shrunk | None) -> BenchRow:
    if shrunk is None:
        return replace(row, error="the failing program did not fail again")
    small = shrunk.result
    return replace(
        row,
        length=small.length,
        shrink_runs=small.runs,
        shrink_operations=small.operations,
        minimal=small.minimal,
    )

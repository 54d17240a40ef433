"""The bench: what is found, by whom, and what a fleet that does not start means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tierfuzz import bench
from tierfuzz.bench import BenchConfig, control, described, distinct_fleets, look_for, run_bench
from tierfuzz.bench_results import BenchRow, ControlRow
from tierfuzz.catalogue.all_cases import case
from tierfuzz.catalogue.case import DEFAULT_FLEET, Case
from tierfuzz.errors import ExitCode, WorkerDied
from tierfuzz.fleet import Fleet
from tierfuzz.program import FleetConfig

SMALL = FleetConfig(workers=1, device_tokens=512, host_ratio=3.0)
CASE = Case("T98", "t", "s", "lifecycle", ("CRASH",), "dies-on-load-back", ("crash",), SMALL)


def test_a_fault_is_found_by_its_oracle_and_shrunk() -> None:
    row = look_for(case("T01"), 0, BenchConfig(budget_s=60.0))
    assert row.named
    assert row.by in case("T01").oracles
    assert row.operations >= row.was >= 2
    assert 2 <= row.length <= 8
    assert row.minimal
    assert row.shrink_runs > 0


def test_another_oracle_is_no_find_by_the_case() -> None:
    wrong = replace(case("T01"), oracles=("missing-medium",))
    row = look_for(wrong, 0, BenchConfig(budget_s=1.0))
    assert row.found
    assert not row.named
    assert row.length == 0


def test_a_fleet_that_does_not_start_is_found_only_where_that_is_the_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dead(_: Fleet) -> None:
        raise WorkerDied("exit status 1\nlog")

    monkeypatch.setattr(Fleet, "start", dead)
    row = look_for(CASE, 0, BenchConfig())
    assert (row.found, row.error) == (False, "exit status 1")
    row = look_for(replace(CASE, oracles=("start",)), 0, BenchConfig())
    assert (row.named, row.by) == (True, "start")


def test_healthy_workers_are_silent_and_the_state_is_reached() -> None:
    row = control(SMALL, 0, BenchConfig(control_cases=4))
    assert row.silent
    assert row.reached
    assert row.cases == 4
    assert row.fleet == "write_through, workers=1, device_tokens=512, host_ratio=3.0"


def test_every_fleet_is_a_control_once() -> None:
    cases = [CASE, replace(CASE, id="T99"), replace(CASE, fleet=DEFAULT_FLEET)]
    assert distinct_fleets(cases) == [SMALL, DEFAULT_FLEET]
    assert described(FleetConfig(policy="write_back")) == "write_back"


def test_control_and_canary_come_first_and_ctrl_c_keeps_what_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def found(case: Case, seed: int, _: BenchConfig) -> BenchRow:
        if seed == 1:
            raise KeyboardInterrupt
        return BenchRow(case.id, case.plant, seed, ("crash",), "crash", True, 3, 0.1)

    silent = ControlRow("fleet", 0, 6, 60, (), True)
    monkeypatch.setattr(bench, "look_for", found)
    monkeypatch.setattr(bench, "control", lambda *_: silent)
    seen: list[object] = []
    result = run_bench([CASE, replace(CASE, id="T99")], BenchConfig(seeds=2), seen.append)
    assert [getattr(row, "case", "control") for row in seen] == ["control", "canary", "T98"]
    assert result.interrupted
    assert result.exit_code is ExitCode.INTERRUPTED

"""Fleets as drawn, alive: healthy ones hold whatever their sizes; planted faults never break the tester."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings

from tierfuzz.fleet import Fleet
from tierfuzz.model.config import EngineConfig
from tierfuzz.program import Burst, Fill, FleetConfig, Flush, Generate, Hold, Operation, Program, Release
from tierfuzz.prompts import Piece
from tierfuzz.runner import Runner
from tierfuzz.strategies.faults import plants
from tierfuzz.strategies.fleets import fleets
from tierfuzz.verdict import Verdict

LIVE = settings(
    max_examples=4,
    phases=(Phase.generate,),  # a start of workers takes too long to shrink by
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


def come_back(fleet: FleetConfig) -> Program:
    """Every kind of operation once; the probe finds its prefix on host only."""
    prompt = (Piece("A", 0, 5 * fleet.page_size + 1),)
    other = (Piece("B", 0, 3 * fleet.page_size),)
    operations: tuple[Operation, ...] = (
        Generate("a", 0, prompt, 2),
        Generate("a2", 0, prompt, 2, "repeat"),
        Burst("b", (Generate("b0", 0, other, 3), Generate("b1", 0, other, 0, abort_after_s=0.0))),
        Fill("f", 0, "F", target="a"),
        Generate("p", 0, prompt, 2, "probe"),
        Hold("h", 0),
        Generate("c", 0, (Piece("C", 0, 2 * fleet.page_size),), 1),
        Release("r", 0),
        Flush("x", 0),
        Generate("z", 0, prompt, 1, "repeat"),
    )
    return Program(fleet, operations)


def verdicts_on(fleet: FleetConfig) -> tuple[list[Verdict], Counter[str]]:
    """Run the program on workers of this configuration: verdicts, and what was reached."""
    with tempfile.TemporaryDirectory() as logs, Fleet(fleet, Path(logs)) as live:
        runner = Runner(live)
        return runner.run(come_back(fleet)), runner.reach


@given(fleets())
@settings(max_examples=50)
def test_fleets_are_configurations_that_the_engine_takes(fleet: FleetConfig) -> None:
    config = EngineConfig(fleet.page_size, fleet.device_tokens, fleet.host_tokens, fleet.policy)
    assert config.host_pages > 0


@LIVE
@given(fleets(workers=1))
def test_a_healthy_fleet_of_any_size_holds_and_reaches_host(fleet: FleetConfig) -> None:
    verdicts, reach = verdicts_on(fleet)
    assert [verdict for verdict in verdicts if verdict.is_violation] == []
    if fleet.host_ratio >= 2:  # a host pool of the size of the device pool may be turned over with it
        assert reach["probe-host-only"] == reach["forecast-host-only"] == 1


@LIVE
@given(fleets(workers=1, plants=plants()))
def test_whatever_is_planted_ends_as_verdicts(fleet: FleetConfig) -> None:
    verdicts, _ = verdicts_on(fleet)
    assert all(verdict.oracle for verdict in verdicts)

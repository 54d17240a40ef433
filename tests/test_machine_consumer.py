"""The machine with a consumer: live workers, the reference unaccused, a plant found; programs replay it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierfuzz.campaign import CampaignConfig, run_campaign
from tierfuzz.errors import ExitCode
from tierfuzz.fleet import Fleet
from tierfuzz.machine import TierMachine
from tierfuzz.machine_consumer import ConsumerMachine, machine_for
from tierfuzz.program import (
    Deregister,
    Fill,
    FleetConfig,
    Flush,
    Generate,
    Idle,
    Operation,
    Program,
    Restart,
    RestartConsumer,
)
from tierfuzz.prompts import Piece
from tierfuzz.runner import Runner

HEARD = FleetConfig(host_ratio=3.0, consumer="reference")
OPERATIONS: tuple[Operation, ...] = (
    Generate("a", 0, (Piece("A", 0, 130),), 1),
    Fill("b", 0, "F", target="a"),
    Generate("c", 1, (Piece("A", 0, 60),), 1),
    RestartConsumer("d", 0),
    Generate("e", 0, (Piece("A", 0, 130),), 1, "probe"),
    RestartConsumer("f", 0, replay=False),
    Generate("g", 0, (Piece("A", 0, 130), Piece("B", 0, 40)), 1, "fork"),
    Generate("G", 0, (Piece("C", 0, 130),), 1),
    Idle("h", 0),
    Restart("i", 0),
    Generate("j", 0, (Piece("A", 0, 40),), 1),
    Idle("k", 0),
    Deregister("l", 0),
    RestartConsumer("n", 0),
    Flush("o", 0),
)


@pytest.mark.parametrize(
    ("plants", "expected"),
    [
        ((), set()),
        (("sequence-reset-ignored",), {"router-stale", "router-miss"}),
        (("dead-rank-keeps-entries",), {"router-leak"}),
        (("clear-ignored",), {"router-stale"}),
    ],
)
def test_a_program_with_a_consumer(plants: tuple[str, ...], expected: set[str], tmp_path: Path) -> None:
    with Fleet(FleetConfig(host_ratio=3.0, consumer="reference", plants=plants), tmp_path) as fleet:
        runner = Runner(fleet)
        for _ in range(2):
            verdicts = runner.run(Program(fleet.config, OPERATIONS))
            assert {v.oracle for v in verdicts if v.is_violation} >= expected
            assert expected or verdicts == []
            assert runner.held["router-miss"] > 0
            assert runner.reach["late-join"] == 3
            assert runner.reach["deregistered"] == 1
            assert runner.reach["router-host-only"] > 0


def test_a_campaign_with_the_control_fails_and_with_the_reference_does_not(tmp_path: Path) -> None:
    results = {}
    for name in ("reference", "tier-blind"):
        fleet = FleetConfig(host_ratio=3.0, consumer=name)
        config = CampaignConfig(fleet, ("write_back",), 3, 12, seed=1, log_dir=tmp_path / name, repeats=1)
        results[name] = run_campaign(config)
    assert results["reference"].exit_code is ExitCode.HELD, results["reference"].policies[0].failures
    assert set(results["tier-blind"].policies[0].violated) <= {"router-miss", "wrong-worker"}
    assert results["tier-blind"].policies[0].violated["router-miss"] > 0
    assert results["reference"].policies[0].reach["deregistered"] >= 3


def test_the_rules_of_a_consumer_are_there_with_a_consumer_only() -> None:
    assert machine_for(HEARD) is ConsumerMachine
    assert machine_for(FleetConfig()) is TierMachine


def test_operations_of_a_consumer_do_nothing_without_one(tmp_path: Path) -> None:
    operations = (Generate("a", 0, (Piece("A", 0, 40),), 1), RestartConsumer("b", 0), Deregister("c", 0))
    with Fleet(FleetConfig(workers=1), tmp_path) as fleet:
        runner = Runner(fleet)
        assert runner.run(Program(fleet.config, operations)) == []
        assert runner.held["router-stale"] == 0

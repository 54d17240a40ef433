"""Every planted fault is found by its oracle within few cases; healthy workers stay silent."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tierfuzz.campaign import CampaignConfig, PolicyResult, run_campaign
from tierfuzz.catalogue.all_cases import CASES as CATALOGUE
from tierfuzz.catalogue.case import DEFAULT_FLEET
from tierfuzz.errors import ExitCode
from tierfuzz.faults.registry import FAULTS
from tierfuzz.fleet import Fleet
from tierfuzz.program import WRITE_POLICIES, FleetConfig, Flush, Generate, Program, WritePolicy
from tierfuzz.prompts import Piece
from tierfuzz.runner import Runner

CASES = 12
SEED = 3
ON_WRITE_BACK = {"abort-keeps-lock"}  # found under every policy, here soonest


def campaign(policy: WritePolicy, fleet: FleetConfig, folder: Path) -> tuple[ExitCode, PolicyResult]:
    """A short campaign under one policy."""
    config = CampaignConfig(fleet, (policy,), CASES, steps=30, seed=SEED, log_dir=folder, repeats=1)
    result = run_campaign(config)
    return result.exit_code, result.policies[0]


def reached_in(plant: str) -> FleetConfig:
    """The fleet that the catalogue names for a fault; one like any other for those that it does not have."""
    storage = FAULTS[plant].oracle.startswith("storage")
    other = FleetConfig(
        policy="write_back" if plant in ON_WRITE_BACK else "write_through",
        host_ratio=3.0,
        storage_threshold=64 if storage else 0,
    )
    fleet = next((case.fleet for case in CATALOGUE if case.plant == plant), other)
    return replace(fleet, plants=(plant,))


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_planted_fault_is_found_by_its_oracle(name: str, tmp_path: Path) -> None:
    fleet = reached_in(name)
    code, result = campaign(fleet.policy, fleet, tmp_path)
    named = {slug for case in CATALOGUE if case.plant == name for slug in case.oracles}
    assert code is ExitCode.VIOLATION
    assert (named | {FAULTS[name].oracle}) & set(result.violated)


@pytest.mark.parametrize("policy", WRITE_POLICIES)
def test_the_control_is_silent_and_not_vacuous(policy: WritePolicy, tmp_path: Path) -> None:
    code, result = campaign(policy, DEFAULT_FLEET, tmp_path)
    assert code is ExitCode.HELD, [f.verdicts for f in result.failures]
    assert result.held["host-miss"] > 0


@pytest.mark.parametrize("policy", WRITE_POLICIES)
def test_the_control_with_storage_is_silent_and_not_vacuous(policy: WritePolicy, tmp_path: Path) -> None:
    fleet = FleetConfig(host_ratio=3.0, storage_threshold=32)
    config = CampaignConfig(fleet, (policy,), CASES, steps=30, seed=SEED, log_dir=tmp_path, repeats=1)
    result = run_campaign(config)
    assert result.exit_code is ExitCode.HELD, [f.verdicts for f in result.policies[0].failures]


def test_a_namespace_leak_through_storage_is_found(tmp_path: Path) -> None:
    fleet = FleetConfig(host_ratio=3.0, storage_threshold=32, profile="sglang-0.5.17")  # B6
    a, b = "tenant-a", "tenant-b"
    operations = (
        Generate("a", 0, (Piece("A", 0, 100),), 1, "namespaced", a),
        Flush("f", 0),
        Generate("s", 0, (Piece("A", 0, 33),), 1, "namespaced", b),
        Generate("b", 0, (Piece("A", 0, 100),), 1, "repeat", b),
    )
    with Fleet(fleet, tmp_path) as live:
        verdicts = Runner(live).run(Program(fleet, operations))
    assert "namespace-leak" in {verdict.oracle for verdict in verdicts}

"""Planted faults outside the catalogue are found by the oracle that they name; healthy workers stay silent.

Those of the catalogue are looked for by `tierfuzz bench`; test_pins.py holds fourteen of them to budgets.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tierfuzz.bench import BenchConfig, look_for
from tierfuzz.campaign import CampaignConfig, run_campaign
from tierfuzz.catalogue.all_cases import CASES as CATALOGUE
from tierfuzz.catalogue.case import DEFAULT_FLEET, Case
from tierfuzz.errors import ExitCode
from tierfuzz.faults.registry import FAULTS
from tierfuzz.fleet import Fleet
from tierfuzz.program import WRITE_POLICIES, FleetConfig, Flush, Generate, Program, WritePolicy
from tierfuzz.prompts import Piece
from tierfuzz.runner import Runner

CASES = 12
SEED = 3
# Where a fault is found soonest, or at all, if not under write_through.
POLICIES: dict[str, WritePolicy] = {
    "abort-keeps-lock": "write_back",
    "backup-at-once": "write_through_selective",
}
IN_CATALOGUE = {case.plant for case in CATALOGUE}
# The search ends when it has found something; a slow machine gets more time, not another verdict.
SEARCH = BenchConfig(budget_s=120.0, shrink_seeds=0)


def case_of(plant: str) -> Case:
    """A case like those of the catalogue, in a fleet like any other."""
    oracle = FAULTS[plant].oracle
    fleet = replace(
        DEFAULT_FLEET,
        policy=POLICIES.get(plant, "write_through"),
        storage_threshold=64 if oracle.startswith("storage") else 0,
    )
    return Case(plant, plant, "", "engine tree", (), plant, (oracle,), fleet)


@pytest.mark.parametrize("name", sorted(set(FAULTS) - IN_CATALOGUE - {"canary"}))
def test_a_planted_fault_is_found_by_its_oracle(name: str) -> None:
    row = look_for(case_of(name), SEED, SEARCH)
    assert row.named, row


@pytest.mark.parametrize("policy", WRITE_POLICIES)
def test_the_control_is_silent_and_not_vacuous(policy: WritePolicy, tmp_path: Path) -> None:
    config = CampaignConfig(DEFAULT_FLEET, (policy,), CASES, steps=30, seed=SEED, log_dir=tmp_path, repeats=1)
    result = run_campaign(config)
    assert result.exit_code is ExitCode.HELD, [f.verdicts for f in result.policies[0].failures]
    assert result.policies[0].held["host-miss"] > 0


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

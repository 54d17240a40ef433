"""What machines run on when an engine, or workers that run already, were chosen for a whole test run."""

from __future__ import annotations

from unittest import SkipTest

import pytest

from tierfuzz.program import Attached, FleetConfig
from tierfuzz.session import Sessions

ASKED = FleetConfig(policy="write_back", host_ratio=3.0)
RUNNING = FleetConfig(engine="sglang", policy="write_back", attached=(Attached("http://w"),))


def chosen(fleet: FleetConfig, asked: FleetConfig = ASKED) -> FleetConfig:
    """What a machine gets that asks for `asked`."""
    sessions = Sessions()
    sessions.choose(fleet)
    return sessions.chosen(asked)


def test_without_a_choice_machines_get_what_they_ask_for() -> None:
    assert Sessions().chosen(ASKED) == ASKED
    assert chosen(FleetConfig(engine="sim")) == ASKED


def test_a_chosen_engine_keeps_sizes_and_policy() -> None:
    config = chosen(FleetConfig(engine="sglang-cpu", engine_version="0.5.23"))
    assert (config.engine, config.engine_version) == ("sglang-cpu", "0.5.23")
    assert (config.policy, config.host_ratio) == ("write_back", 3.0)


@pytest.mark.parametrize(
    "asked", [FleetConfig(plants=("no-backup",)), FleetConfig(engine="sglang", policy="write_through")]
)
def test_planted_faults_and_named_engines_stay_as_they_are(asked: FleetConfig) -> None:
    assert chosen(FleetConfig(engine="sglang-cpu"), asked) == asked


def test_attached_workers_are_taken_as_they_are() -> None:
    assert chosen(RUNNING) == RUNNING


def test_a_machine_of_another_policy_is_skipped_on_attached_workers() -> None:
    with pytest.raises(SkipTest, match="have the policy write_back, not write_through"):
        chosen(RUNNING, FleetConfig(policy="write_through"))

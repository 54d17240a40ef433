"""Campaigns: counts, exit codes, vacuity, and Ctrl-C."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tierfuzz.campaign import CampaignConfig, CampaignResult, Failure, Known, PolicyResult, run_campaign
from tierfuzz.defects.known import load_known
from tierfuzz.errors import ExitCode, RequestFailed
from tierfuzz.program import FleetConfig, Program
from tierfuzz.report.summary import as_json
from tierfuzz.runevents import OperationDone, OperationStarted, RunEnded, RunEvent
from tierfuzz.runner import Runner
from tierfuzz.verdict import Outcome, Verdict

FLEET = FleetConfig(host_ratio=3.0)
REACHED = Counter({"probe-host-only": 3})
FAILED = Failure([Verdict("host-miss", Outcome.VIOLATION, 0, "op1", "m")], Program(FLEET, ()))


def result_of(*policies: PolicyResult) -> CampaignResult:
    """A campaign with these results."""
    return CampaignResult(list(policies))


def test_exit_codes() -> None:
    held = PolicyResult("write_through", reach=REACHED)
    vacuous = PolicyResult("write_back")
    failed = PolicyResult("write_back", failures=[FAILED])
    known = PolicyResult("write_back", reach=REACHED, known={"B7": Known(2, FAILED)})
    assert result_of(held).exit_code is ExitCode.HELD
    assert result_of(held, known).exit_code is ExitCode.VIOLATION
    assert result_of(held, vacuous).exit_code is ExitCode.VACUOUS
    assert result_of(vacuous, failed).exit_code is ExitCode.VIOLATION
    assert result_of().exit_code is ExitCode.VACUOUS


def test_a_campaign_counts_what_it_did(tmp_path: Path) -> None:
    events: list[RunEvent] = []

    class Recorder:
        def on_event(self, event: RunEvent) -> None:
            events.append(event)

    config = CampaignConfig(FLEET, ("write_through",), max_examples=3, steps=12, log_dir=tmp_path)
    (result,) = run_campaign(config, [Recorder()]).policies
    assert result.examples >= 3
    assert result.operations == sum(isinstance(event, OperationDone) for event in events)
    assert result.held["split-sum"] > 0
    assert not result.failures
    assert isinstance(events[-1], RunEnded)
    assert not list(tmp_path.rglob("*.log"))


def test_the_same_seed_sends_the_same_operations(tmp_path: Path) -> None:
    seen: list[list[object]] = []
    for _ in range(2):
        operations: list[object] = []

        class Recorder:
            def __init__(self, into: list[object]) -> None:
                self.into = into

            def on_event(self, event: RunEvent) -> None:
                if isinstance(event, OperationDone):
                    self.into.append(event.operation)

        config = CampaignConfig(FLEET, ("write_back",), max_examples=2, steps=10, seed=5, log_dir=tmp_path)
        run_campaign(config, [Recorder(operations)])
        seen.append(operations)
    assert seen[0] == seen[1]
    assert seen[0]


def test_ctrl_c_ends_a_campaign_with_what_there_is(tmp_path: Path) -> None:
    class Interrupt:
        def __init__(self) -> None:
            self.left = 5

        def on_event(self, event: RunEvent) -> None:
            if isinstance(event, OperationDone):
                self.left -= 1
                if not self.left:
                    raise KeyboardInterrupt

    config = CampaignConfig(FLEET, ("write_through", "write_back"), max_examples=50, log_dir=tmp_path)
    result = run_campaign(config, [Interrupt()])
    assert result.interrupted
    assert [policy.policy for policy in result.policies] == ["write_through"]


def test_half_an_operation_says_nothing(tmp_path: Path) -> None:
    class Interrupt:
        def on_event(self, event: RunEvent) -> None:
            if isinstance(event, OperationStarted) and event.operation.id == "op3":
                raise KeyboardInterrupt

    config = CampaignConfig(FLEET, ("write_through",), max_examples=50, log_dir=tmp_path)
    result = run_campaign(config, [Interrupt()])
    assert result.exit_code is ExitCode.INTERRUPTED
    assert result.policies[0].examples == 0


def test_what_was_found_before_ctrl_c_is_found() -> None:
    failed = PolicyResult("write_back", failures=[FAILED], interrupted=True)
    assert result_of(failed).exit_code is ExitCode.VIOLATION


def test_an_error_at_the_end_of_a_case_ends_the_campaign_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Runner) -> list[Verdict]:
        raise RequestFailed("no metrics")

    monkeypatch.setattr(Runner, "finish", broken)
    config = CampaignConfig(FLEET, ("write_through",), max_examples=2, steps=3, log_dir=tmp_path)
    with pytest.raises(RequestFailed, match="no metrics"):
        run_campaign(config)


@pytest.mark.parametrize("plant", ["dies-on-load-back"])
def test_a_worker_that_keeps_dying_ends_the_campaign_early(plant: str, tmp_path: Path) -> None:
    fleet = FleetConfig(host_ratio=3.0, plants=(plant,))
    config = CampaignConfig(fleet, ("write_through",), max_examples=200, steps=25, log_dir=tmp_path)
    (result,) = run_campaign(config).policies
    assert result.examples < 100
    assert set(result.violated) == {"crash"}


def test_a_listener_that_breaks_is_reported_and_changes_nothing_else(tmp_path: Path) -> None:
    class Full:
        def on_event(self, event: RunEvent) -> None:
            if isinstance(event, OperationDone):
                raise OSError("no space left on device")

    config = CampaignConfig(FLEET, ("write_back",), max_examples=1, steps=3, log_dir=tmp_path)
    result = run_campaign(config, [Full()])
    assert result.exit_code is ExitCode.HELD
    assert result.broken == ["Full failed at OperationDone: OSError: no space left on device"]
    assert b"no space left on device" in as_json(result)


def test_known_defects_are_counted_apart_and_end_no_campaign(tmp_path: Path) -> None:
    fleet = FleetConfig(workers=1, host_ratio=3.0, profile="sglang-0.5.17")
    config = CampaignConfig(fleet, ("write_back",), 8, steps=12, log_dir=tmp_path, repeats=1)
    (result,) = run_campaign(config).policies
    assert result.known["E5"].cases > 1
    assert not result.failures
    assert result.examples >= 8
    assert result.known["E5"].failure.program.operations


def test_accepted_defects_do_not_fail_a_campaign_and_are_reported(tmp_path: Path) -> None:
    fleet = FleetConfig(workers=1, host_ratio=3.0, profile="sglang-0.5.17")
    config = CampaignConfig(
        fleet, ("write_back",), 8, steps=12, log_dir=tmp_path, repeats=1, known=load_known("sglang-0.5.17")
    )
    result = run_campaign(config)
    (policy,) = result.policies
    assert result.exit_code is ExitCode.HELD
    assert policy.known["E5"].cases > 1
    assert policy.accepted["E5"].oracle == "orphan-parent"
    assert b'"accepted":true' in as_json(result)
    assert {entry.id for entry in result.unseen} == {"B6c", "B7", "E5"} - set(policy.known)


def test_only_what_is_not_accepted_fails() -> None:
    found = PolicyResult("write_back", reach=REACHED, known={"B7": Known(2, FAILED), "E5": Known(1, FAILED)})
    entries = {entry.id: entry for entry in load_known("sglang-0.5.17")}
    found.accepted = {"B7": entries["B7"]}
    assert result_of(found).exit_code is ExitCode.VIOLATION
    found.accepted["E5"] = entries["E5"]
    assert result_of(found).exit_code is ExitCode.HELD

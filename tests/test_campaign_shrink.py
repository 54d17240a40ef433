"""What a campaign found gets small, on its fleet, within a budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierfuzz.campaign import CampaignConfig, run_campaign
from tierfuzz.campaign_results import Failure, PolicyResult
from tierfuzz.campaign_shrink import first_of_each_oracle
from tierfuzz.errors import ExitCode
from tierfuzz.program import FleetConfig, Program
from tierfuzz.runevents import CaseEnded, OperationDone, RunEvent, ShrinkStep
from tierfuzz.shrink.budget import Limits
from tierfuzz.shrinking import MODEST
from tierfuzz.verdict import Outcome, Verdict

FLEET = FleetConfig(host_ratio=3.0, plants=("swapped-order",))


def failure(*oracles: str) -> Failure:
    verdicts = [Verdict(oracle, Outcome.VIOLATION, 0, f"op{n}", "m") for n, oracle in enumerate(oracles)]
    return Failure(verdicts, Program(FLEET, ()))


def test_the_first_failure_of_each_oracle_is_shrunk() -> None:
    one, two, three = failure("content", "host-miss"), failure("host-miss"), failure("host-miss", "hang")
    chosen = [(found, verdict.oracle) for found, verdict in first_of_each_oracle([one, two, three])]
    assert chosen == [(one, "content"), (three, "hang")]


class Recorder:
    """Keeps what it is told; Ctrl-C comes with the first step of a shrinker, if it should."""

    def __init__(self, interrupts: bool = False) -> None:
        self.events: list[RunEvent] = []
        self._interrupts = interrupts

    def on_event(self, event: RunEvent) -> None:
        self.events.append(event)
        if self._interrupts and isinstance(event, ShrinkStep) and event.runs:
            raise KeyboardInterrupt


def ran(tmp_path: Path, limits: Limits | None, recorder: Recorder) -> tuple[PolicyResult, ExitCode]:
    config = CampaignConfig(FLEET, ("write_through",), 2, 10, repeats=1, log_dir=tmp_path, shrink=limits)
    result = run_campaign(config, [recorder])
    return result.policies[0], result.exit_code


def test_a_campaign_shrinks_what_it_found_and_counts_no_candidate(tmp_path: Path) -> None:
    recorder = Recorder()
    found, code = ran(tmp_path, MODEST, recorder)
    assert code is ExitCode.VIOLATION
    shrunk = found.failures[0].shrunk
    assert shrunk is not None
    small = shrunk.result
    assert small.verdict.oracle == found.failures[0].verdicts[0].oracle
    assert small.minimal is True
    assert small.length < len(found.failures[0].program.operations)
    assert all(later.shrunk is None for later in found.failures[1:])
    assert found.operations == sum(isinstance(event, OperationDone) for event in recorder.events)
    assert found.examples == sum(isinstance(event, CaseEnded) for event in recorder.events)


def test_ctrl_c_while_shrinking_keeps_what_was_found(tmp_path: Path) -> None:
    found, code = ran(tmp_path, MODEST, Recorder(interrupts=True))
    assert code is ExitCode.VIOLATION
    assert found.interrupted
    assert found.failures


@pytest.mark.parametrize("limits", [None, Limits(seconds=0.0)])
def test_without_a_budget_nothing_is_shrunk(tmp_path: Path, limits: Limits | None) -> None:
    recorder = Recorder()
    found, _ = ran(tmp_path, limits, recorder)
    assert found.failures
    assert found.failures[0].shrunk is None
    assert not any(isinstance(event, ShrinkStep) and event.runs for event in recorder.events)

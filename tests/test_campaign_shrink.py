"""What a campaign found gets small, on its fleet, within a budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierfuzz import campaign_shrink
from tierfuzz.campaign import CampaignConfig, run_campaign
from tierfuzz.campaign_results import Failure, PolicyResult
from tierfuzz.errors import ExitCode
from tierfuzz.evidence import Evidence
from tierfuzz.fleet import Fleet
from tierfuzz.program import FleetConfig, Program
from tierfuzz.runevents import CaseEnded, Dispatcher, OperationDone, RunEvent, ShrinkStep
from tierfuzz.shrink.budget import Limits
from tierfuzz.shrink.result import ShrinkResult
from tierfuzz.shrinking import MODEST, FleetRuns, Ran, ShrinkConfig, Shrunk
from tierfuzz.verdict import Outcome, Verdict

FLEET = FleetConfig(host_ratio=3.0, plants=("swapped-order",))


class Shrunken:
    """Stands in for shrink(): every small program violates what it is asked for, and these oracles."""

    def __init__(self, *also: str) -> None:
        self.asked: list[str] = []
        self._also = also

    def __call__(
        self, program: Program, _runs: FleetRuns, _config: ShrinkConfig, verdict: Verdict, **_: object
    ) -> Shrunk:
        self.asked.append(verdict.oracle)
        result = ShrinkResult(program, verdict, 9, 9, 9, 1.0, True, (), 2, 2)
        return Shrunk(result, Ran(program, [verdict, *map(about, self._also)], Evidence()))


def about(oracle: str) -> Verdict:
    return Verdict(oracle, Outcome.VIOLATION, 0, "op1", "m")


def test_each_oracle_is_shrunk_once_unless_a_small_program_shows_it(
    monkeypatch: pytest.MonkeyPatch, sim_fleet: Fleet, tmp_path: Path
) -> None:
    shrunken = Shrunken("no-backup")
    monkeypatch.setattr(campaign_shrink, "shrink", shrunken)
    cases = [["content", "host-miss"], ["content"], ["host-miss", "no-backup"], ["no-backup"]]
    result = PolicyResult("write_through")
    result.failures = [Failure([about(oracle) for oracle in case], Program(FLEET, ())) for case in cases]
    campaign_shrink.shrink_failures(result, sim_fleet, ShrinkConfig(), Dispatcher(), tmp_path)
    assert shrunken.asked == ["content", "host-miss"]
    assert [failure.shrunk is not None for failure in result.failures] == [True, False, True, False]


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
    oracles = [one.shrunk.result.verdict.oracle for one in found.failures if one.shrunk is not None]
    assert len(oracles) == len(set(oracles))
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

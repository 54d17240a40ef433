"""One campaign from the command line: what is refused, what is kept, what is said when it breaks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tierfuzz.campaign import CampaignConfig, CampaignResult, Failure, PolicyResult
from tierfuzz.cli import campaign
from tierfuzz.cli.run import run
from tierfuzz.errors import ExitCode, UsageError, WorkerDied
from tierfuzz.evidence import Evidence
from tierfuzz.program import FleetConfig, Idle, Program, load_program
from tierfuzz.runevents import Listener, RunEnded, RunStarted
from tierfuzz.shrink.result import ShrinkResult
from tierfuzz.shrinking import Ran, Shrunk
from tierfuzz.verdict import Outcome, Verdict

HELD = PolicyResult("write_back", 2, 20, 60, 1.0, Counter({"probe-host-only": 3}))
FAILED = PolicyResult(
    "write_through",
    failures=[
        Failure([Verdict("content", Outcome.VIOLATION, 0, "op3", "other words")], Program(FleetConfig(), ()))
    ],
)


def options(*line: str) -> dict[str, Any]:
    """Parsed options of `tierfuzz run`."""
    given: dict[str, Any] = run.make_context("run", list(line)).params
    return given


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def campaign_gives(monkeypatch: pytest.MonkeyPatch, *policies: PolicyResult) -> list[CampaignConfig]:
    """Campaigns end at once with these results; returns the configurations they were given."""
    seen: list[CampaignConfig] = []

    def fake(config: CampaignConfig, listeners: Sequence[Listener]) -> CampaignResult:
        seen.append(config)
        for listener in listeners:
            listener.on_event(RunStarted(config.fleet, config.max_examples))
            listener.on_event(RunEnded(False))
        return CampaignResult(list(policies))

    monkeypatch.setattr(campaign, "run_campaign", fake)
    return seen


def test_options_become_the_configuration(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    seen = campaign_gives(monkeypatch, HELD)
    line = "--policy write_back --profile sglang-0.5.17 --workers 3 --max-examples 7 --steps 9 --seed 5"
    line += (
        " --page-size 32 --device-tokens 2048 --host-ratio 1.5 --ack-delay-ms 2.5 --chunked-prefill-size 64"
    )
    line += " --plant removal-twice --plant no-backup --storage-threshold 96 --patience-s 2 --ranks 2 --json"
    assert campaign.execute(options(*line.split())) is ExitCode.HELD
    (config,) = seen
    assert config.fleet == FleetConfig(
        workers=3,
        page_size=32,
        device_tokens=2048,
        host_ratio=1.5,
        chunked_prefill=64,
        profile="sglang-0.5.17",
        plants=("removal-twice", "no-backup"),
        ack_delay_ms=2.5,
        storage_threshold=96,
        patience_s=2.0,
        ranks=2,
        seed=5,
    )
    assert (config.policies, config.max_examples, config.steps, config.seed) == (("write_back",), 7, 9, 5)
    assert not list(here.iterdir())


@pytest.mark.usefixtures("here")
def test_all_policies_are_run_unless_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = campaign_gives(monkeypatch, HELD)
    campaign.execute(options("--json"))
    assert sorted(seen[0].policies) == ["write_back", "write_through", "write_through_selective"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--chunked-prefill-size 100", "--chunked-prefill-size 100 is no multiple of --page-size 16"),
        ("--page-size 64 --device-tokens 128", "expected at least 512 tokens"),
        ("--page-size 1 --device-tokens 32", "expected at least 64 tokens"),
        ("--plant nothing", "unknown fault 'nothing'"),
        ("--engine warp", "unknown engine 'warp'"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_is_made(
    line: str, said: str, monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    seen = campaign_gives(monkeypatch, HELD)
    with pytest.raises(UsageError, match=said):
        campaign.execute(options(*line.split()))
    assert not seen
    assert not list(here.iterdir())


@pytest.mark.usefixtures("here")
def test_no_limit_of_chunks_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = campaign_gives(monkeypatch, HELD)
    campaign.execute(options("--chunked-prefill-size", "-1", "--json"))
    assert seen[0].fleet.chunked_prefill == -1


def test_a_fault_of_one_s_own_is_found_from_everywhere(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    (here / "mine.py").write_text("from tierfuzz.model.faults import Fault\nclass Mine(Fault):\n    pass\n")
    seen = campaign_gives(monkeypatch, HELD)
    campaign.execute(options("--plant", "mine.py:Mine", "--json"))
    assert seen[0].fleet.plants == (f"{here / 'mine.py'}:Mine",)


def test_a_violation_is_kept_and_the_command_to_run_it_again_is_whole(
    monkeypatch: pytest.MonkeyPatch, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign_gives(monkeypatch, HELD, FAILED)
    assert campaign.execute(options()) is ExitCode.VIOLATION
    assert "tierfuzz replay tierfuzz-out/failure-1-write_through.json\n" in capsys.readouterr().out
    out = here / "tierfuzz-out"
    assert load_program(out / "failure-1-write_through.json") == Program(FleetConfig(), ())
    assert json.loads((out / "result.json").read_text())["exit_code"] == 1
    assert (out / "journal-write_through.jsonl").exists()


def test_a_small_program_lies_beside_what_failed_and_is_named_first(
    monkeypatch: pytest.MonkeyPatch, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = Program(FleetConfig(), (Idle("op4", 1),))
    verdict = FAILED.failures[0].verdicts[0]
    shrunk = Shrunk(
        ShrinkResult(small, verdict, 30, 12, 99, 1.5, True, (), 2, 2), Ran(small, [verdict], Evidence())
    )
    campaign_gives(monkeypatch, replace(FAILED, failures=[replace(FAILED.failures[0], shrunk=shrunk)]))
    campaign.execute(options())
    assert "tierfuzz replay tierfuzz-out/failure-1-write_through-min.json\n" in capsys.readouterr().out
    assert load_program(here / "tierfuzz-out" / "failure-1-write_through-min.json") == small
    names = {path.name for path in (here / "tierfuzz-out").iterdir()}
    assert {"failure-1-write_through-min", "failure-1-write_through.json"} <= names


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("line", "shrinks"), [((), True), (("--no-shrink",), False)])
def test_shrinking_can_be_left_out(
    monkeypatch: pytest.MonkeyPatch, line: tuple[str, ...], shrinks: bool
) -> None:
    seen = campaign_gives(monkeypatch, HELD)
    campaign.execute(options("--json", *line))
    assert (seen[0].shrink is not None) is shrinks


def test_out_is_written_also_when_all_held(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    campaign_gives(monkeypatch, HELD)
    assert campaign.execute(options("--out", "kept", "--json")) is ExitCode.HELD
    assert {path.name for path in (here / "kept").iterdir()} == {"result.json", "journal-write_through.jsonl"}


def test_a_broken_environment_keeps_the_logs_and_says_where(
    monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    def broken(config: CampaignConfig, _: Sequence[Listener]) -> CampaignResult:
        config.log_dir.mkdir()
        (config.log_dir / "worker-0.log").write_text("no memory")
        raise WorkerDied("it died")

    monkeypatch.setattr(campaign, "run_campaign", broken)
    with pytest.raises(WorkerDied, match="it died\nlogs and journals are in tierfuzz-out"):
        campaign.execute(options("--json"))
    assert (here / "tierfuzz-out" / "logs" / "worker-0.log").read_text() == "no memory"

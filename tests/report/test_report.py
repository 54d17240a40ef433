"""What a campaign prints: tables, the ending, JSON, progress on a fake clock."""

from __future__ import annotations

import io
import json
from collections import Counter

from rich.console import Console

from tierfuzz.campaign import CampaignResult, Failure, Known, PolicyResult
from tierfuzz.clock import FakeClock
from tierfuzz.program import FleetConfig, Idle, Program
from tierfuzz.report.progress import LIVE_EVERY_S, PLAIN_EVERY_S, Progress
from tierfuzz.report.summary import as_json, ending, print_summary
from tierfuzz.runevents import CaseEnded, OperationDone, RunEnded, RunStarted
from tierfuzz.shrink.result import ShrinkResult
from tierfuzz.shrinking import Shrunk
from tierfuzz.verdict import Outcome, Verdict

FLEET = FleetConfig()
VERDICT = Verdict(
    "host-miss", Outcome.VIOLATION, 1, "op4", "device 16, host 0 tokens", ("reason one",), seen=2, tries=3
)


def held() -> PolicyResult:
    """A policy under which everything held."""
    return PolicyResult(
        "write_through", 3, 30, 90, 1.5, Counter({"probe-host-only": 4}), Counter({"host-miss": 4})
    )


def failed() -> PolicyResult:
    """A policy with one violation."""
    result = held()
    result.violated.update(["host-miss"])
    result.failures.append(Failure([VERDICT], Program(FLEET, ())))
    return result


def printed(result: CampaignResult) -> str:
    """The summary as plain text."""
    out = io.StringIO()
    print_summary(Console(file=out, width=120), result)
    return out.getvalue()


def test_a_summary_shows_figures_verdicts_and_reasons() -> None:
    text = printed(CampaignResult([failed()]))
    assert "4 / 1 / 0" in text
    assert "host-miss at op4 on worker 1 (2 of 3 tries):" in text
    assert "because reason one" in text


def test_what_was_shrunk_is_shown_and_written() -> None:
    result = failed()
    small = Program(FLEET, (Idle("op4", 1),))
    shrunk = ShrinkResult(small, VERDICT, 30, 12, 99, 1.5, True, (), 2, 2)
    result.failures[0].shrunk = Shrunk(shrunk, None)
    campaign = CampaignResult([result])
    assert "write_through: host-miss: 30 operations became 1 in 12 runs" in printed(campaign)
    (written,) = json.loads(as_json(campaign))["policies"][0]["shrunk"]
    assert (written["was"], written["runs"], written["minimal"]) == (30, 12, True)


def test_the_ending_says_what_the_exit_code_says() -> None:
    assert ending(CampaignResult([held()])) == "Every verdict held."
    assert ending(CampaignResult([failed()])).startswith("Violations in 1 case")
    assert ending(CampaignResult([PolicyResult("write_back")])).startswith("Vacuous: probe-host-only")


def test_known_defects_stand_apart() -> None:
    result = held()
    result.known["B7"] = Known(3, Failure([VERDICT], Program(FLEET, ())))
    campaign = CampaignResult([result])
    assert "write_through: known defect B7 in 3 cases: host-miss at op4" in printed(campaign)
    assert ending(campaign) == "No new violations. Known defects of this version: B7."
    assert json.loads(as_json(campaign))["policies"][0]["known"]["B7"]["cases"] == 3


def test_json_has_a_version_and_every_verdict() -> None:
    body = json.loads(as_json(CampaignResult([failed()])))
    assert (body["kind"], body["format"], body["exit_code"]) == ("campaign", 1, 1)
    (violation,) = body["policies"][0]["violations"]
    assert violation["reasons"] == ["reason one"]


def test_plain_progress_prints_a_line_now_and_then_and_one_at_the_end() -> None:
    out, clock = io.StringIO(), FakeClock()
    progress = Progress(Console(file=out, width=200), clock, live=False)
    progress.on_event(RunStarted(FLEET, 10))
    for number in range(3):
        clock.advance(PLAIN_EVERY_S / 2)
        progress.on_event(OperationDone(Idle("i", 0), 0, ()))
        progress.on_event(CaseEnded(number + 1, {}, {"probe-host-only": 2}))
    progress.on_event(RunEnded(False))
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert "3 cases" in lines[-1]
    assert "probe-host-only 6" in lines[-1]


def test_live_progress_draws_over_itself_and_leaves_one_line() -> None:
    out, clock = io.StringIO(), FakeClock()
    console = Console(file=out, width=200, force_terminal=True, legacy_windows=False)
    progress = Progress(console, clock, live=True)
    progress.on_event(RunStarted(FLEET, 10))
    clock.advance(LIVE_EVERY_S)
    progress.on_event(OperationDone(Idle("i", 0), 0, ()))
    progress.on_event(OperationDone(Idle("i", 0), 0, ()))  # too soon after the last to be drawn
    progress.on_event(RunEnded(False))
    assert out.getvalue().count("operations (") == 2 + 1, "drawn, drawn as it stops, and the line"
    assert out.getvalue().rstrip().splitlines()[-1].count("2 operations (20/s)") == 1


def test_a_long_line_is_not_broken_where_no_terminal_is() -> None:
    out = io.StringIO()
    print_summary(Console(file=out, width=40), CampaignResult([failed()]))
    assert "host-miss at op4 on worker 1 (2 of 3 tries):\n  device 16, host 0 tokens\n" in out.getvalue()


def test_an_interrupted_run_says_so_and_what_it_found() -> None:
    cut = failed()
    cut.interrupted = True
    assert ending(CampaignResult([cut])).startswith("Interrupted: ")
    assert ending(CampaignResult([cut])).endswith("Violations in 1 case.")

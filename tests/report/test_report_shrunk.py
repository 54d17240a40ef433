"""What a shrinker shows."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from tierfuzz.clock import FakeClock
from tierfuzz.program import FleetConfig, Idle, Program
from tierfuzz.report.shrunk import ShrinkProgress, print_shrunk
from tierfuzz.runevents import ShrinkStep
from tierfuzz.shrink.result import ShrinkResult
from tierfuzz.verdict import Outcome, Verdict


def result(minimal: bool | None = True, unchecked: tuple[str, ...] = (), stopped: str = "") -> ShrinkResult:
    program = Program(FleetConfig(), (Idle("op4", 1), Idle("op7", 0)))
    verdict = Verdict("content", Outcome.VIOLATION, 0, "op7", "other [answers]")
    return ShrinkResult(program, verdict, 30, 12, 99, 1.5, minimal, unchecked, 2, 2, stopped)


@pytest.mark.parametrize(
    ("shown", "end"),
    [
        (result(), "without any one operation it passes"),
        (result(None, ("whether it fails without op4",)), "not checked: whether it fails without op4"),
        (result(False), "an operation less failed too, though too seldom to be accepted"),
    ],
)
def test_the_end_says_what_is_sure(shown: ShrinkResult, end: str) -> None:
    assert shown.sentence == f"content: 30 operations became 2 in 12 runs (99 operations, 1.5 s); {end}"


def test_the_program_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_shrunk(Console(), result(stopped="interrupted"))
    assert capsys.readouterr().out.splitlines() == [
        "content at op7 on worker 0:",
        "  other [answers]",
        result().sentence,
        "  op4: worker 1 idle",
        "  op7: worker 0 idle",
        "Ended early: interrupted.",
    ]


def test_plain_progress_prints_what_got_smaller_or_now_and_then() -> None:
    clock, out = FakeClock(100.0), io.StringIO()
    progress = ShrinkProgress(Console(file=out), clock, live=False)
    for runs, now, wait in ((0, 30, 0.0), (1, 30, 1.0), (2, 8, 1.0), (3, 8, 1.0), (4, 8, 4.5)):
        clock.advance(wait)
        progress.on_event(ShrinkStep("guess", 30, now, runs))
    progress.close()
    lines = [
        f"shrinking (guess): 30 operations became {now} in {n} runs" for n, now in ((0, 30), (2, 8), (4, 8))
    ]
    assert out.getvalue().splitlines() == lines


def test_live_progress_leaves_nothing_behind() -> None:
    out = io.StringIO()
    progress = ShrinkProgress(Console(file=out, force_terminal=True, width=100), FakeClock(), live=True)
    progress.on_event(ShrinkStep("guess", 30, 8, 2))
    progress.close()
    assert "30 operations became 8 in 2 runs" in out.getvalue()
    assert out.getvalue().endswith("\x1b[2K")

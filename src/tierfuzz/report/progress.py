"""Progress while a campaign runs: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.live import Live
from rich.text import Text

from tierfuzz.clock import Clock
from tierfuzz.report.shrunk import step_line
from tierfuzz.runevents import (
    CaseEnded,
    OperationDone,
    RunEnded,
    RunEvent,
    RunStarted,
    ShrinkStep,
    VerdictGiven,
)
from tierfuzz.verdict import Outcome

PLAIN_EVERY_S = 5.0
LIVE_EVERY_S = 0.1
SHOWN_REACH = ("probe-host-only", "host-hit", "load-back", "host-eviction", "overlap")


class Progress:
    """A listener. `live` draws on one line; otherwise a line every few seconds is printed."""

    def __init__(self, console: Console, clock: Clock, live: bool) -> None:
        self._console = console
        self._clock = clock
        self._live: Live | None = None
        self._wants_live = live
        self._policy, self._most = "", 0
        self._started = self._shown = 0.0
        self._counts: Counter[str] = Counter()
        self._reach: Counter[str] = Counter()
        self._step: ShrinkStep | None = None

    def on_event(self, event: RunEvent) -> None:
        """Count, and show now and then."""
        if isinstance(event, RunStarted):
            self._begin(event)
        elif isinstance(event, OperationDone):
            self._counts["operations"] += 1
        elif isinstance(event, VerdictGiven):
            self._counts["violations"] += event.verdict.outcome is Outcome.VIOLATION
        elif isinstance(event, CaseEnded):
            self._counts["examples"] = event.number
            self._reach.update(event.reach)
        elif isinstance(event, ShrinkStep):
            self._step = event
        elif isinstance(event, RunEnded):
            self._step = None
            self._end()
            return
        self._show()

    def _begin(self, event: RunStarted) -> None:
        self._policy, self._most = event.fleet.policy, event.max_examples
        self._started = self._shown = self._clock.monotonic()
        self._counts.clear()
        self._reach.clear()
        self._step = None
        if self._wants_live:
            self._live = Live(Text(""), console=self._console, auto_refresh=False, transient=True)
            self._live.start()

    def _show(self) -> None:
        now = self._clock.monotonic()
        if now - self._shown < (LIVE_EVERY_S if self._live else PLAIN_EVERY_S):
            return
        self._shown = now
        if self._live is not None:
            self._live.update(Text(self.line()), refresh=True)
        else:
            self._console.print(self.line(), highlight=False, soft_wrap=True)

    def _end(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        self._console.print(self.line(), highlight=False, soft_wrap=True)

    def line(self) -> str:
        """Where the run stands, or what is done to its failures."""
        if self._step is not None:
            return f"{self._policy}: {step_line(self._step)}"
        seconds = max(1e-9, self._clock.monotonic() - self._started)
        reach = ", ".join(f"{name} {self._reach[name]}" for name in SHOWN_REACH)
        return (
            f"{self._policy}: {self._counts['examples']} cases (of about {self._most}), "
            f"{self._counts['operations']} operations ({self._counts['operations'] / seconds:.0f}/s), "
            f"{self._counts['violations']} violations; {reach}"
        )

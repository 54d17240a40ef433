"""What a shrinker shows: a line while it searches, the small program at the end."""

from __future__ import annotations

from rich.console import Console
from rich.live import Live
from rich.text import Text

from tierfuzz.clock import Clock
from tierfuzz.runevents import RunEvent, ShrinkStep
from tierfuzz.shrink.result import ShrinkResult
from tierfuzz.shrink.words import lines_of
from tierfuzz.violations import describe

LIVE_EVERY_S = 0.1
PLAIN_EVERY_S = 5.0


def step_line(step: ShrinkStep) -> str:
    """Where a search stands."""
    return f"shrinking ({step.name}): {step.was} operations became {step.now} in {step.runs} runs"


class ShrinkProgress:
    """A listener. `live` draws on one line; otherwise it prints one when it got smaller, or now and then."""

    def __init__(self, console: Console, clock: Clock, live: bool) -> None:
        self._console = console
        self._clock = clock
        self._now, self._shown = -1, 0.0
        self._live: Live | None = None
        if live:
            self._live = Live(Text(""), console=console, auto_refresh=False, transient=True)
            self._live.start()

    def on_event(self, event: RunEvent) -> None:
        """Show the step, if it is time."""
        if not isinstance(event, ShrinkStep):
            return
        waited = self._clock.monotonic() - self._shown
        smaller = event.now != self._now
        if waited < (LIVE_EVERY_S if self._live is not None else PLAIN_EVERY_S) and not smaller:
            return
        self._now, self._shown = event.now, self._clock.monotonic()
        if self._live is not None:
            self._live.update(Text(step_line(event)), refresh=True)
        else:
            self._console.print(step_line(event), highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Give the terminal back."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def print_shrunk(console: Console, result: ShrinkResult) -> None:
    """The violation, what the search took, and the program."""
    lines = [describe(result.verdict), result.sentence, *(f"  {line}" for line in lines_of(result.program))]
    lines += [f"Ended early: {result.stopped}."] if result.stopped else []
    console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)

"""Ctrl-C that cannot get lost."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any

from tierfuzz.runevents import CaseStarted, OperationStarted, RunEvent, ShrinkStep


class Interrupt:
    """A listener, and a context in which SIGINT is raised as usual and remembered.

    Python drops an exception that is raised inside a callback of its garbage collector, and Hypothesis has
    one (seen: a campaign that went on after Ctrl-C). So the next operation raises it again, or the next step
    of a shrinker.
    """

    def __init__(self) -> None:
        self._seen = False
        self._before: Any = None

    def __enter__(self) -> Interrupt:
        """Take SIGINT; only the main thread may."""
        self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give SIGINT back."""
        signal.signal(signal.SIGINT, self._before)

    def on_event(self, event: RunEvent) -> None:
        """Nothing new begins after Ctrl-C."""
        if self._seen and isinstance(event, CaseStarted | OperationStarted | ShrinkStep):
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._seen = True
        raise KeyboardInterrupt

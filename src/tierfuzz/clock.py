"""The one time source: everything that waits or stamps asks a Clock, so that tests can own time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Time as tierfuzz sees it; all values in seconds."""

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back; only differences mean something."""

    def wall(self) -> float:
        """Seconds since the Unix epoch."""

    def sleep(self, seconds: float) -> None:
        """Return after `seconds` have passed on this clock."""


class SystemClock:
    """The machine's own clock."""

    def monotonic(self) -> float:
        """Seconds on the machine's monotonic clock."""
        return time.monotonic()

    def wall(self) -> float:
        """Seconds since the Unix epoch."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Suspend this thread for `seconds`."""
        time.sleep(seconds)


class FakeClock:
    """A clock for tests: stands still until it is advanced or slept on."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def monotonic(self) -> float:
        """Seconds since construction, plus `start`."""
        return self._now

    def wall(self) -> float:
        """The same as monotonic: a fake clock has one time."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Advance by `seconds` at once."""
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Move time forward by `seconds`; going back is a mistake of the test."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back: {seconds} s")
        self._now += seconds


SYSTEM_CLOCK: Clock = SystemClock()

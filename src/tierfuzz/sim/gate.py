"""When copies between tiers land: after a seeded delay, or never while they are held."""

from __future__ import annotations

import random
from collections.abc import Iterable

from tierfuzz.clock import Clock
from tierfuzz.model.copies import Copy


class CopyGate:
    """The gate of `Copies`: asked at each poll whether a copy may land. Delays in seconds."""

    def __init__(self, rng: random.Random, delay_s: float, clock: Clock) -> None:
        self.held = False
        self._rng = rng
        self._delay = delay_s
        self._clock = clock
        self._due: dict[int, float] = {}

    def issued(self, pending: Iterable[Copy]) -> None:
        """Draw a delay for every copy that has none yet; to be called after each tick."""
        for copy in pending if self._delay > 0 else ():
            if copy.number not in self._due:
                self._due[copy.number] = self._clock.monotonic() + self._rng.uniform(0, self._delay)

    def __call__(self, copy: Copy) -> bool:
        """True when the copy may land now."""
        if self.held or self._clock.monotonic() < self._due.get(copy.number, 0.0):
            return False
        self._due.pop(copy.number, None)
        return True

    def wait_s(self, pending: Iterable[Copy]) -> float | None:
        """Seconds until the next of these copies may land; None when only a release can let one land.

        Copies of a kind land in order, so only the first of each kind counts.
        """
        if self.held:
            return None
        first: dict[str, float] = {}
        for copy in pending:
            first.setdefault(copy.kind, self._due.get(copy.number, 0.0))
        return max(0.0, min(first.values()) - self._clock.monotonic()) if first else None

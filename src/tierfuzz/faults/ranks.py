"""Faults of workers that consist of several ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tierfuzz.model.engine import Engine
from tierfuzz.model.faults import Fault
from tierfuzz.model.request import TickResult


class CollectiveSkipped(Fault):
    """A second rank with less host room has no copy to ask about, and skips what both ranks must enter."""

    oracle = "hang"
    source = "T50, sgl-project/sglang#26921"

    def __init__(self) -> None:
        self.other: Engine | None = None
        self.known: set[str] = set()
        self.stuck = False

    def tick(self, engine: Engine, inner: Callable[[], TickResult]) -> TickResult:
        """Both ranks do the same in lock step, as long as both or none have copies to ask about."""
        other = self._rank_beside(engine)
        self.stuck = self.stuck or bool(len(engine.copies)) != bool(len(other.copies))
        if self.stuck:
            return TickResult()
        other.tick()
        return inner()

    def _rank_beside(self, engine: Engine) -> Engine:
        if self.other is None:
            room = engine.config.device_tokens // 2 // engine.config.page_size * engine.config.page_size
            self.other = Engine(replace(engine.config, host_tokens=room), engine.rules)
            self.other.copies.gate = engine.copies.gate
        for active in engine.waiting:
            if active.request.rid not in self.known:
                self.known.add(active.request.rid)
                self.other.submit(active.request)
        return self.other

    def abort(self, engine: Engine, inner: Callable[[str], None], rid: str) -> None:
        """On both ranks."""
        self._rank_beside(engine).abort(rid)
        inner(rid)

    def flush(self, engine: Engine, inner: Callable[[], bool]) -> bool:
        """On both ranks."""
        return self._rank_beside(engine).flush() and inner()

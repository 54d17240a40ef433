"""Faults of workers that consist of several ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from tierfuzz.model.engine import Engine
from tierfuzz.model.faults import Fault
from tierfuzz.model.request import TickResult


class Publisher(Protocol):
    """What a fault has to know of the event sockets."""

    rank: int


class SecondRankUnheard(Fault):
    """Ranks after the first publish to a port that the first has taken, so that nobody ever hears them."""

    oracle = "insert-bound"
    source = "T26, sgl-project/sglang#29491"

    def send(
        self, publisher: Publisher, inner: Callable[[int, bytes], None], seq: int, payload: bytes
    ) -> None:
        """Of the first rank only."""
        if publisher.rank == 0:
            inner(seq, payload)


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
        other = self.other = self.other or _rank_beside(engine)
        for active in engine.waiting:
            if active.request.rid not in self.known:
                self.known.add(active.request.rid)
                other.submit(active.request)
        self.stuck = self.stuck or bool(len(engine.copies)) != bool(len(other.copies))
        if self.stuck:
            return TickResult()
        other.tick()
        return inner()

    def abort(self, engine: Engine, inner: Callable[[str], None], rid: str) -> None:
        """On both ranks."""
        del engine
        if self.other is not None:
            self.other.abort(rid)
        inner(rid)

    def flush(self, engine: Engine, inner: Callable[[], bool]) -> bool:
        """On both ranks."""
        del engine
        return (self.other is None or self.other.flush()) and inner()


def _rank_beside(engine: Engine) -> Engine:
    size = engine.config.page_size
    room = engine.config.device_tokens // 2 // size * size
    other = Engine(replace(engine.config, host_tokens=room), engine.rules)
    other.copies.gate = engine.copies.gate
    return other

"""Faults of a subscriber: restarts, gaps and orphans that it does not notice or does nothing about."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tierfuzz.codec import decode_batch
from tierfuzz.events import BlockRemoved, BlockStored, Tier
from tierfuzz.model.faults import Fault

if TYPE_CHECKING:
    from tierfuzz.consumers.base import Source
    from tierfuzz.consumers.reference import Reference

Deliver = Callable[[int, int, int, bytes], None]
Wishes = list[tuple[int, int, int]]


class SequenceResetIgnored(Fault):
    """Messages are taken for old ones when a restarted worker counts from 0 again."""

    oracle = "router-stale"
    source = "T33, llm-d/llm-d-router#2853"

    def __init__(self) -> None:
        self._newest: dict[Source, int] = {}

    def deliver(
        self, consumer: Reference, inner: Deliver, worker: int, rank: int, seq: int, payload: bytes
    ) -> None:
        """Drop what is not newer."""
        del consumer
        if seq > self._newest.get((worker, rank), -1):
            self._newest[worker, rank] = seq
            inner(worker, rank, seq, payload)

    def reset(self, consumer: Reference, inner: Callable[[], None]) -> None:
        """A consumer that starts over knows no numbers."""
        del consumer
        self._newest.clear()
        inner()


class OrphansDropped(Fault):
    """A store is dropped when its parent is unknown; what follows it names the dropped block."""

    oracle = "router-miss"
    source = "T34, llm-d/llm-d-kv-cache#372"

    def book_store(
        self,
        consumer: Reference,
        inner: Callable[[Source, BlockStored], None],
        source: Source,
        event: BlockStored,
    ) -> None:
        """Book only what hangs from something known."""
        if event.parent is None or consumer.tree.knows(source, event.parent):
            inner(source, event)


class _NothingRepaired(Fault):
    """Losses are seen, and nothing is done about them."""

    def wanted(self, consumer: Reference, inner: Callable[[], Wishes]) -> Wishes:
        """Ask for nothing, and go on as if nothing were missing."""
        del consumer
        inner()
        inner()
        return []

    def lost(self, consumer: Reference, inner: Callable[[Source], None], source: Source) -> None:
        """Believe what was said before."""
        del consumer, inner, source


class GapIgnored(_NothingRepaired):
    """Every seventh message is lost on the way; the gap is seen, and nothing is done."""

    oracle = "router-miss"
    source = "T35, sgl-project/sglang#32728"

    def relay(
        self, link: Any, inner: Callable[[int, int, bytes], None], worker: int, seq: int, payload: bytes
    ) -> None:
        """Lose some messages."""
        del link
        if seq % 7 != 6:
            inner(worker, seq, payload)


class LostRemovalStrandsClaim(_NothingRepaired):
    """The first message with removals from host is lost, and nothing else ever clears what it removed."""

    oracle = "router-stale"
    source = "T38, sgl-project/sglang#38720"

    def __init__(self) -> None:
        self._lost = False

    def relay(
        self, link: Any, inner: Callable[[int, int, bytes], None], worker: int, seq: int, payload: bytes
    ) -> None:
        """Lose one message."""
        del link
        events = decode_batch(seq, payload).events
        removes = any(isinstance(event, BlockRemoved) and event.tier is Tier.HOST for event in events)
        if self._lost or not removes:
            inner(worker, seq, payload)
        self._lost = self._lost or removes

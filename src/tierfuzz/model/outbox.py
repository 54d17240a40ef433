"""Events waiting for the next publish point, merged as the profile's engine merges them."""

from __future__ import annotations

from tierfuzz.events import AllBlocksCleared, BlockRemoved, BlockStored, KvEvent


class Outbox:
    """A queue of events; `coalesce` is "", "rust" or "python" (engine-0.5.23 section 2)."""

    def __init__(self, coalesce: str) -> None:
        self._coalesce = coalesce
        self._events: list[KvEvent] = []
        self._namespaces: list[str] = []

    def __len__(self) -> int:
        """Events waiting."""
        return len(self._events)

    def put(self, event: KvEvent, namespace: str = "") -> None:
        """Queue an event, merged into the last one where the engine would do so."""
        merged = self._merge(event, namespace)
        if merged is not None:
            self._events[-1] = merged
            return
        self._events.append(event)
        self._namespaces.append(namespace)

    def take(self) -> list[KvEvent]:
        """The queued events; the queue is empty afterwards."""
        events, self._events, self._namespaces = self._events, [], []
        return events

    def _merge(self, event: KvEvent, namespace: str) -> KvEvent | None:
        if not self._coalesce or not self._events or isinstance(event, AllBlocksCleared):
            return None
        if self._coalesce == "rust" and namespace != self._namespaces[-1]:
            return None
        last = self._events[-1]
        if isinstance(event, BlockStored) and isinstance(last, BlockStored):
            return _merge_stores(last, event)
        if isinstance(event, BlockRemoved) and isinstance(last, BlockRemoved) and last.medium == event.medium:
            return BlockRemoved(last.hashes + event.hashes, event.medium)
        return None


def _merge_stores(last: BlockStored, event: BlockStored) -> BlockStored | None:
    if last.medium != event.medium or event.parent != last.hashes[-1]:
        return None
    return BlockStored(
        hashes=last.hashes + event.hashes,
        parent=last.parent,
        tokens=last.tokens + event.tokens,
        block_size=event.block_size,
        medium=event.medium,
        lora_id=event.lora_id,
    )

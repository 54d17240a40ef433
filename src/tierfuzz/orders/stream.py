"""Streams: what the workers of a fleet sent, message by message, as data.

A stream is judged by causality (tierfuzz.orders.legality) and given to a consumer (tierfuzz.orders.check).
The position of a message among those of its worker and rank is its sequence number, so that what is left of
a stream after cutting is a stream again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from tierfuzz.events import AllBlocksCleared, BlockRemoved, BlockStored, KvEvent, Tier
from tierfuzz.program import WritePolicy

Source = tuple[int, int]  # worker and rank: a sequence of their own, a cache of their own


class Sent(msgspec.Struct, frozen=True, tag="batch"):
    """One message. `namespaces`: whose pages each event is of, as the worker knows; () for no namespace."""

    worker: int
    rank: int
    events: tuple[KvEvent, ...]
    namespaces: tuple[str, ...] = ()

    @property
    def source(self) -> Source:
        """Whose sequence the message belongs to."""
        return self.worker, self.rank

    def namespace(self, index: int) -> str:
        """Namespace of an event of the message."""
        return self.namespaces[index] if self.namespaces else ""


class Restarted(msgspec.Struct, frozen=True, tag="restart"):
    """The worker's process ended and started again: all its ranks are empty and count from 0."""

    worker: int


Entry = Sent | Restarted


class Stream(msgspec.Struct, frozen=True):
    """A history as delivered. `page_size` in tokens.

    `profile` names the engine whose order it is in (tierfuzz.model.rules); `storage`: pages can come back
    from below host. `shared`: blocks that several namespaces may hold although no entry says so (recordings).
    """

    policy: WritePolicy
    entries: tuple[Entry, ...]
    page_size: int = 4
    profile: str = "default"
    storage: bool = False
    shared: frozenset[int] = frozenset()
    note: str = ""

    @property
    def events(self) -> int:
        """Number of events; a restart counts as one."""
        return sum(len(entry.events) if isinstance(entry, Sent) else 1 for entry in self.entries)


class Step(NamedTuple):
    """One event about one block, the unit of causality. `together`: blocks that leave in the same event."""

    kind: str  # "store", "remove", "clear" or "restart"
    tier: Tier = Tier.DEVICE
    block: int = 0
    parent: int | None = None
    namespace: str = ""
    together: frozenset[int] = frozenset()


def steps_of(event: KvEvent, namespace: str = "") -> Iterator[Step]:
    """An event block by block: a store from its parent on, a removal in any order."""
    if isinstance(event, BlockStored):
        parent = event.parent
        for block in event.hashes:
            yield Step("store", event.tier, block, parent, namespace)
            parent = block
    elif isinstance(event, BlockRemoved):
        together = frozenset(event.hashes)
        for block in event.hashes:
            yield Step("remove", event.tier, block, None, namespace, together)
    elif isinstance(event, AllBlocksCleared):
        yield Step("clear", namespace=namespace)

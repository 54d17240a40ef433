"""Faults of the event publisher: what an event, the replay or the server info says of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from tierfuzz.events import AllBlocksCleared, BlockRemoved, BlockStored, KvEvent, Tier
from tierfuzz.faults import publisher
from tierfuzz.hashing import page_hashes
from tierfuzz.model.engine import Engine
from tierfuzz.model.faults import Fault
from tierfuzz.model.node import Node

Frames = tuple[bytes, ...]
MOST_REPLAYED = 8


class HashOfOwnTokens(publisher.StoreOnSplit):
    """Every block is named by its own tokens, wherever it stands, and a split announces its upper half."""

    oracle = "unexplained-store"
    source = "T21, sgl-project/sglang#13488"

    def __init__(self) -> None:
        self._own: dict[int | None, int] = {}

    def emit(
        self, engine: Engine, inner: Callable[[KvEvent, str], None], event: KvEvent, namespace: str
    ) -> None:
        """Rename blocks and parents."""
        del engine
        if isinstance(event, BlockStored):
            self._own[event.hashes[0]] = page_hashes(event.tokens, event.block_size)[0]
            event = msgspec.structs.replace(event, parent=self._own.get(event.parent))
        if isinstance(event, BlockStored | BlockRemoved):
            hashes = tuple(self._own.get(page_hash, page_hash) for page_hash in event.hashes)
            event = msgspec.structs.replace(event, hashes=hashes)
        inner(event, namespace)


class PublishesNothing(Fault):
    """The tree hands no events to the publisher, which is up and silent."""

    oracle = "ledger-accounting"
    source = "T22, sgl-project/sglang#26387"

    def publish(self, engine: Engine, inner: Callable[[], None]) -> None:
        """Forget what is queued."""
        del inner
        engine.cache.outbox.take()


class StorageStoreAtSubmission(Fault):
    """A node is announced as stored when its write is submitted; the write then stops half way."""

    oracle = "storage-claim"
    source = "T24, sgl-project/sglang#29948"

    def write_storage(self, engine: Engine, inner: Callable[[Node], None], node: Node) -> None:
        """Announce, then write the first half."""
        del inner
        cache = engine.cache
        if cache.config.storage is None or node.host is None:
            return
        keys = [cache.storage_key(node.namespace, page_hash) for page_hash in node.run.hashes]
        if keys[0] not in cache.storage:
            cache.emit_store(node, Tier.STORAGE)
        for key, slot in list(zip(keys, node.host, strict=True))[: len(node) // 2]:
            cache.storage[key] = cache.host.content[slot]


class HalfSizeAdvertised(Fault):
    """The server info names half of the block size at which events are cut."""

    oracle = "advertised-size"
    source = "T25, sgl-project/sglang#35298"

    def advertise(self, publisher: object, inner: Callable[[int], int], block_size: int) -> int:
        """Halve it."""
        del publisher
        return inner(block_size) // 2


class ReplayTruncated(Fault):
    """A replay stops after eight batches, without an end mark."""

    oracle = "sequence-gap"
    source = "T27, sgl-project/sglang#38945"

    def answer(
        self,
        publisher: object,
        inner: Callable[[bytes, Sequence[Frames]], None],
        client: bytes,
        messages: Sequence[Frames],
    ) -> None:
        """Send what a small queue takes; the end mark is the last message."""
        del publisher
        inner(client, messages if len(messages) <= MOST_REPLAYED + 1 else messages[:MOST_REPLAYED])


class HostStoreBlank(Fault):
    """Host stores carry no tokens, no parent, and a block size of 0."""

    oracle = "malformed-event"
    source = "T30, vllm-project/vllm#43468"

    def emit(
        self, engine: Engine, inner: Callable[[KvEvent, str], None], event: KvEvent, namespace: str
    ) -> None:
        """Blank the fields."""
        del engine
        if isinstance(event, BlockStored) and event.tier is Tier.HOST:
            event = msgspec.structs.replace(event, tokens=(), parent=None, block_size=0)
        inner(event, namespace)


class OneMediumPerBlock(Fault):
    """A block keeps the medium it had first: other copies come and go unsaid, its end is published twice."""

    oracle = "no-backup"
    source = "T32, kvcache-ai/Mooncake#3818"

    def __init__(self) -> None:
        self._held: dict[int, tuple[str | None, int]] = {}

    def emit(
        self, engine: Engine, inner: Callable[[KvEvent, str], None], event: KvEvent, namespace: str
    ) -> None:
        """Announce the first copy of a block, and twice the end of the last."""
        del engine
        if isinstance(event, AllBlocksCleared):
            self._held.clear()
            inner(event, namespace)
            return
        for page_hash in event.hashes:
            medium, copies = self._held.pop(page_hash, (event.medium, 0))
            copies += 1 if isinstance(event, BlockStored) else -1
            if copies > 0:
                self._held[page_hash] = (medium, copies)
            if isinstance(event, BlockStored) and copies == 1:
                inner(event, namespace)
            for _ in range(0 if copies > 0 else 2):
                inner(BlockRemoved((page_hash,), medium), namespace)

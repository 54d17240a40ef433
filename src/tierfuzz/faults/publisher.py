"""Faults of the event publisher: what is announced, when, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from tierfuzz.events import BlockRemoved, BlockStored, KvEvent, Tier
from tierfuzz.hashing import page_hashes
from tierfuzz.model.copies import Copy
from tierfuzz.model.engine import Engine
from tierfuzz.model.faults import Fault
from tierfuzz.model.node import Node


class RemovalAtBackup(Fault):
    """The device removal goes out when the host copy exists, though the device copy stays."""

    oracle = "ledger-accounting"
    source = "T23, sgl-project/sglang#18209"

    def acknowledge(self, engine: Engine, inner: Callable[[Copy], None], copy: Copy) -> None:
        """Acknowledge, then announce removals that did not happen."""
        inner(copy)
        for node in copy.nodes if copy.kind == "backup" else ():
            engine.cache.emit_remove(node, Tier.DEVICE)

    def stage(self, engine: Engine, inner: Callable[..., bool], node: Node, staged: Any) -> bool:
        """write_back has no ack of its own: hide the parent's removal until its last child is gone."""
        parent = node.parent
        done = inner(node, staged)
        if done and parent is not None and parent.device is not None and not parent.is_root:
            engine.cache.emit_remove(parent, Tier.DEVICE)
        return done


class HostStoreLost(Fault):
    """Host copies are made but never announced."""

    oracle = "ledger-accounting"
    source = "T18, sgl-project/sglang#38486"

    def emit_store(self, engine: Engine, inner: Callable[[Node, Tier], None], node: Node, tier: Tier) -> None:
        """Announce device stores only."""
        del engine
        if tier is not Tier.HOST:
            inner(node, tier)


class FirstPageUnannounced(Fault):
    """The first page of a node that hangs off the root is never announced as stored."""

    oracle = "orphan-parent"
    source = "T19, sgl-project/sglang#27072"

    def emit(
        self, engine: Engine, inner: Callable[[KvEvent, str], None], event: KvEvent, namespace: str
    ) -> None:
        """Pass everything but stores without a parent."""
        del engine
        if not isinstance(event, BlockStored) or event.parent is not None:
            inner(event, namespace)


class RemovalTwice(Fault):
    """Every removal from device is published twice."""

    oracle = "unmatched-removal"
    source = "T32, kvcache-ai/Mooncake#3818"

    def emit_remove(
        self, engine: Engine, inner: Callable[[Node, Tier], None], node: Node, tier: Tier
    ) -> None:
        """Announce, and once more."""
        del engine
        inner(node, tier)
        if tier is Tier.DEVICE:
            inner(node, tier)


class StoreOnSplit(Fault):
    """A split announces its upper half again, though nothing has moved."""

    oracle = "duplicate-store"
    source = "T21, sgl-project/sglang#13488"

    def split(self, engine: Engine, inner: Callable[[Node, int], Node], node: Node, pages: int) -> Node:
        """Split and announce."""
        upper = inner(node, pages)
        if upper.device is not None:
            engine.cache.emit_store(upper, Tier.DEVICE)
        return upper


class HashWithoutPosition(Fault):
    """Device stores carry a hash of the page's own tokens, whatever stands before it."""

    oracle = "unexplained-store"
    source = "T21, sgl-project/sglang#13488"

    def emit(
        self, engine: Engine, inner: Callable[[KvEvent, str], None], event: KvEvent, namespace: str
    ) -> None:
        """Hash each page as if it were the first of a prompt."""
        del engine
        if isinstance(event, BlockStored) and event.tier is Tier.DEVICE and event.parent is not None:
            event = msgspec.structs.replace(event, hashes=page_hashes(event.tokens, event.block_size)[:1])
        inner(event, namespace)


class MediumOmitted(Fault):
    """Store events carry no medium."""

    oracle = "missing-medium"
    source = "T39, llm-d/llm-d-kv-cache#592"

    def emit(
        self, engine: Engine, inner: Callable[[KvEvent, str], None], event: KvEvent, namespace: str
    ) -> None:
        """Drop the medium of stores."""
        del engine
        inner(_with_medium(event, None) if isinstance(event, BlockStored) else event, namespace)


class MediumMisspelled(Fault):
    """Removals from host name a medium that nobody knows."""

    oracle = "unknown-medium"
    source = "T39, sgl-project/sglang#22894"

    def emit(
        self, engine: Engine, inner: Callable[[KvEvent, str], None], event: KvEvent, namespace: str
    ) -> None:
        """Spell the host tier in an unknown way."""
        del engine
        host = isinstance(event, BlockStored | BlockRemoved) and event.tier is Tier.HOST
        inner(_with_medium(event, "PINNED_RAM") if host else event, namespace)


class DeviceRemovalLost(Fault):
    """Removals from device are never published."""

    oracle = "over-capacity"
    source = "T31, NVIDIA/TensorRT-LLM#16335"

    def emit_remove(
        self, engine: Engine, inner: Callable[[Node, Tier], None], node: Node, tier: Tier
    ) -> None:
        """Announce removals from host only."""
        del engine
        if tier is Tier.HOST:
            inner(node, tier)


class SwappedOrder(Fault):
    """The two tier events of a page come in the order of the other write policy."""

    oracle = "event-order"
    source = "event contract fact 1, sgl-project/sglang#39110"

    def __init__(self) -> None:
        self._late: list[Node] = []

    def acknowledge(self, engine: Engine, inner: Callable[[Copy], None], copy: Copy) -> None:
        """write_through: keep the host stores back until their nodes leave the device."""
        if copy.kind != "backup":
            inner(copy)
            return
        self._late += copy.nodes
        engine.cache.unlock(copy.nodes[-1])

    def demote(self, engine: Engine, inner: Callable[[Node], None], node: Node) -> None:
        """Device removal first, host store after it."""
        inner(node)
        if node in self._late:
            self._late.remove(node)
            engine.cache.emit_store(node, Tier.HOST)

    def stage(self, engine: Engine, inner: Callable[..., bool], node: Node, staged: Any) -> bool:
        """write_back: host store first, device removal after it."""
        if not engine.cache.reserve_host(len(node)):
            return inner(node, staged)
        engine.cache.emit_store(node, Tier.HOST)
        return inner(node, staged)


class BatchLost(Fault):
    """Every seventh event batch never leaves, live or replayed."""

    oracle = "sequence-gap"
    source = "T35, sgl-project/sglang#32728"

    def send(self, publisher: object, inner: Callable[[int, bytes], None], seq: int, payload: bytes) -> None:
        """Skip some sequence numbers."""
        del publisher
        if seq % 7 != 6:
            inner(seq, payload)


class PayloadTruncated(Fault):
    """Every seventh event batch loses its last bytes."""

    oracle = "malformed-event"
    source = "T36, llm-d/llm-d-kv-cache#603"

    def send(self, publisher: object, inner: Callable[[int, bytes], None], seq: int, payload: bytes) -> None:
        """Cut some payloads short."""
        del publisher
        inner(seq, payload[:-3] if seq % 7 == 6 else payload)


def _with_medium(event: KvEvent, medium: str | None) -> KvEvent:
    if isinstance(event, BlockStored):
        return BlockStored(event.hashes, event.parent, event.tokens, event.block_size, medium, event.lora_id)
    return BlockRemoved(event.hashes, medium) if isinstance(event, BlockRemoved) else event

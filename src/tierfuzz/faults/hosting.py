"""Faults of the host tier's room: what is evicted from it, when, and what is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tierfuzz.events import Tier
from tierfuzz.model.engine import Engine
from tierfuzz.model.faults import Fault
from tierfuzz.model.node import Node


class HostParentBeforeChild(Fault):
    """Host victims are chosen without a look at children that have a host copy."""

    oracle = "event-order"
    source = "T04, sgl-project/sglang#23537"

    def evict_host(self, engine: Engine, inner: Callable[[int], int], pages: int) -> int:
        """Start with the oldest inner node, whose subtree is lost with its host slots."""
        victims = [n for n in engine.cache.tree.nodes() if n.host_only and not n.pins and not n.staged]
        inner_nodes = [n for n in victims if n.children and all(c in victims for c in n.children.values())]
        if not inner_nodes:
            return inner(pages)
        oldest = min(inner_nodes, key=lambda node: node.stamp)
        engine.cache.remove_host(oldest)
        return len(oldest) + (inner(pages - len(oldest)) if pages > len(oldest) else 0)


class LoadBackUnprotected(Fault):
    """Host pages that a load-back is about to read may be evicted to make room for it."""

    oracle = "crash"
    source = "T05, sgl-project/sglang#26728"

    def load_back(
        self, engine: Engine, inner: Callable[..., bool], anchor: Node | None, nodes: list[Node]
    ) -> bool:
        """No pins, and no younger by having been matched."""
        engine.cache.rules = engine.rules.but(load_back_protects=False)
        for node in nodes:
            node.stamp = 0
        return inner(anchor, nodes)


class DemotedWithoutHostCopy(Fault):
    """A victim that found no host room counts as copied: it stays in the tree with pages in no tier."""

    oracle = "crash"
    source = "T06, sgl-project/sglang#27108"

    def stage(self, engine: Engine, inner: Callable[..., bool], node: Node, staged: Any) -> bool:
        """Ignore that the host has no room."""
        cache = engine.cache
        assert node.device is not None
        if cache.reserve_host(len(node)):
            return inner(node, staged)
        cache.emit_remove(node, Tier.DEVICE)
        cache.device.give(node.device)
        node.device = None
        return True


class MirrorsNeverReclaimed(Fault):
    """Host copies of what is on device are never given up, however small the host pool is."""

    oracle = "no-backup"
    source = "T10, sgl-project/sglang#33862"

    def reserve_host(self, engine: Engine, inner: Callable[[int], bool], pages: int) -> bool:
        """Look for room among host-only nodes alone."""
        engine.cache.rules = engine.rules.but(mirrors_reclaimable=False)
        return inner(pages)


class HostEvictsEverything(Fault):
    """A host eviction does not count what it has freed, and so empties the host tier."""

    oracle = "prefix-miss"
    source = "T09, sgl-project/sglang#4987"

    def evict_host(self, engine: Engine, inner: Callable[[int], int], pages: int) -> int:
        """Free the whole pool, whatever was asked for."""
        del pages
        return inner(engine.cache.host.capacity)

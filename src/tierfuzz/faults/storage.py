"""Faults of the storage tier."""

from __future__ import annotations

from collections.abc import Callable

from tierfuzz.faults.accounting import Account
from tierfuzz.model.engine import Engine
from tierfuzz.model.faults import Fault
from tierfuzz.model.node import Node
from tierfuzz.model.request import Active
from tierfuzz.model.sequence import PageRun
from tierfuzz.observation import TierSplit


class StorageForgets(Fault):
    """Nothing is ever written to storage."""

    oracle = "storage-miss"
    source = "T13, sgl-project/sglang#26886"

    def write_storage(self, engine: Engine, inner: Callable[[Node], None], node: Node) -> None:
        """Skip the write."""
        del engine, inner, node


class HeadNeverStored(Fault):
    """Nodes that begin a prefix are never written to storage, where look-ups count from the first page."""

    oracle = "storage-miss"
    source = "T13, sgl-project/sglang#26886"

    def write_storage(self, engine: Engine, inner: Callable[[Node], None], node: Node) -> None:
        """Write tails only."""
        del engine
        if node.parent is not None and not node.parent.is_root:
            inner(node)


class FetchAnchorStale(Fault):
    """What was fetched from storage below a node that a split has made is dropped: its id is not known."""

    oracle = "storage-miss"
    source = "T12, sgl-project/sglang#36834"

    def __init__(self) -> None:
        self.unknown: set[Node] = set()

    def split(self, engine: Engine, inner: Callable[[Node, int], Node], node: Node, pages: int) -> Node:
        """The upper half is in no table of ids."""
        del engine
        upper = inner(node, pages)
        self.unknown.add(upper)
        return upper

    def refill(
        self,
        engine: Engine,
        inner: Callable[[Node, PageRun, list[int]], int],
        anchor: Node,
        run: PageRun,
        slots: list[int],
    ) -> int:
        """Drop the span when its anchor is not found."""
        if anchor not in self.unknown:
            return inner(anchor, run, slots)
        engine.cache.host.give(slots)
        return len(run)


class StorageBelowThreshold(Fault):
    """A prefetch that is not worth it is made all the same."""

    oracle = "storage-below-threshold"
    source = "reference 5.8, prefetch_threshold"

    def stored_pages(
        self, engine: Engine, inner: Callable[[str, PageRun], int], namespace: str, run: PageRun
    ) -> int:
        """Count what is stored, however little."""
        del inner
        keys = [engine.cache.storage_key(namespace, h) for h in run.hashes]
        return next((i for i, key in enumerate(keys) if key not in engine.cache.storage), len(keys))


class HostReportedAsStorage(Fault):
    """Every host hit is accounted for as a storage hit."""

    oracle = "storage-phantom"
    source = "T45, sgl-project/sglang#37503"

    def account(
        self, engine: Engine, inner: Callable[..., Account], active: Active, host_tokens: int, loaded: bool
    ) -> Account:
        """Account host as storage."""
        del engine
        total, split = inner(active, host_tokens, loaded)
        return total, TierSplit(split.device, 0, split.host + split.storage) if split else None

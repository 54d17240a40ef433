"""Faults of the look-up: what is held and cannot be reached, or is reached twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tierfuzz.events import Tier
from tierfuzz.model.engine import Engine
from tierfuzz.model.faults import Fault
from tierfuzz.model.node import Node
from tierfuzz.model.request import Active
from tierfuzz.model.sequence import PageRun

Match = Callable[[str, PageRun], list[Node]]


class InnerStateLost(Fault):
    """A device eviction drops the state of inner nodes that have no host copy; no match passes them then."""

    oracle = "ledger-accounting"
    source = "T07, sgl-project/sglang#40680"

    def __init__(self) -> None:
        self.lost: set[int] = set()

    def evict_device(self, engine: Engine, inner: Callable[[int], int], tokens: int) -> int:
        """Evict, and drop states."""
        freed = inner(tokens)
        inner_nodes = [node for node in engine.cache.tree.nodes() if node.children and not node.backed]
        self.lost.update(node.run.hashes[-1] for node in inner_nodes)
        return freed

    def match(self, engine: Engine, inner: Match, namespace: str, run: PageRun) -> list[Node]:
        """End before the first node without a state."""
        del engine
        path = inner(namespace, run)
        stop = next((i for i, node in enumerate(path) if node.run.hashes[-1] in self.lost), len(path))
        return path[:stop]

    def insert(
        self, engine: Engine, inner: Callable[..., list[int]], namespace: str, run: PageRun, *rest: Any
    ) -> list[int]:
        """What was computed again has its states back."""
        del engine
        self.lost.difference_update(run.hashes)
        return inner(namespace, run, *rest)


class LoadedTwice(Fault):
    """A node whose load-back is under way is announced as loaded once more for the next request on it."""

    oracle = "duplicate-store"
    source = "T11, sgl-project/sglang#35931"

    def __init__(self) -> None:
        self.inserting = False

    def insert_prompt(self, engine: Engine, inner: Callable[[Active], None], active: Active) -> None:
        """A request that looks its own pages up again is no second one."""
        del engine
        self.inserting = True
        inner(active)
        self.inserting = False

    def match(self, engine: Engine, inner: Match, namespace: str, run: PageRun) -> list[Node]:
        """Take what is being loaded for host-only."""
        path = inner(namespace, run)
        loading = {node for copy in engine.copies.pending if copy.kind == "load" for node in copy.nodes}
        for node in path:
            if node in loading and not self.inserting:
                engine.cache.emit_store(node, Tier.DEVICE)
        return path


class HostCopyNotIndexed(Fault):
    """Host copies are made, announced and charged, and no look-up ever finds them."""

    oracle = "host-miss"
    source = "T16, vllm-project/vllm#53498"

    def match(self, engine: Engine, inner: Match, namespace: str, run: PageRun) -> list[Node]:
        """End before the first node that is on host only."""
        del engine
        path = inner(namespace, run)
        stop = next((i for i, node in enumerate(path) if node.device is None), len(path))
        return path[:stop]

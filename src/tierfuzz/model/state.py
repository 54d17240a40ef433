"""What a tiered cache holds, the walk that matches a prefix, and the events of single transitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import MutableMapping

from tierfuzz.events import BlockRemoved, BlockStored, KvEvent, Tier
from tierfuzz.model.config import EngineConfig
from tierfuzz.model.copies import Copies
from tierfuzz.model.node import Node, Tree, common_pages
from tierfuzz.model.outbox import Outbox
from tierfuzz.model.pools import Pool
from tierfuzz.model.rules import Rules
from tierfuzz.model.sequence import PageRun

MEDIUM = {Tier.DEVICE: "GPU", Tier.HOST: "CPU_PINNED", Tier.STORAGE: "DISK"}


class CacheState:
    """Tree, pools and queues of one worker."""

    def __init__(self, config: EngineConfig, rules: Rules) -> None:
        self.config = config
        self.rules = rules
        self.page_size = config.page_size
        self.tree = Tree()
        self.device = Pool(config.device_pages)
        self.host = Pool(config.host_pages)
        self.outbox = Outbox(rules.coalesce)
        self.copies = Copies()
        self.counters: Counter[str] = Counter()
        self.storage: MutableMapping[tuple[str, int], int] = {}

    # events ----------------------------------------------------------------------------------------
    def emit(self, event: KvEvent, namespace: str) -> None:
        """Queue one event (a seam for faults of the publisher)."""
        self.outbox.put(event, namespace)

    def emit_store(self, node: Node, tier: Tier) -> None:
        """One store event a page, parents first (reference 3.3)."""
        assert node.parent is not None
        parent = None if node.parent.is_root else node.parent.run.hashes[-1]
        for page_hash, tokens in zip(node.run.hashes, node.run.tokens, strict=True):
            event = BlockStored((page_hash,), parent, tokens, self.page_size, MEDIUM[tier])
            self.emit(event, node.namespace)
            parent = page_hash

    def emit_remove(self, node: Node, tier: Tier) -> None:
        """One removal event a node."""
        self.emit(BlockRemoved(node.run.hashes, MEDIUM[tier]), node.namespace)

    # walks -----------------------------------------------------------------------------------------
    def match(self, namespace: str, run: PageRun) -> list[Node]:
        """Nodes that hold the longest prefix of `run`; stamps them and splits the last (5.1, 5.5)."""
        path: list[Node] = []
        node, at = self.tree.root(namespace), 0
        while at < len(run) and (child := node.children.get(run.hashes[at])) is not None:
            shared = common_pages(child.run.hashes, run.hashes, at)
            partial = shared < len(child)
            if not partial or self.rules.refresh_remainder:
                child.stamp = self.tree.tick()
            node = self.split(child, shared) if partial else child
            path.append(node)
            at += shared
            if partial:
                break
        return path

    def find(self, namespace: str, run: PageRun) -> list[Node]:
        """Nodes that lie wholly on `run`; changes nothing."""
        path: list[Node] = []
        node, at = self.tree.root(namespace), 0
        while at < len(run) and (child := node.children.get(run.hashes[at])) is not None:
            if common_pages(child.run.hashes, run.hashes, at) < len(child):
                break
            path.append(child)
            node, at = child, at + len(child)
        return path

    def split(self, node: Node, pages: int) -> Node:
        """Cut a node after `pages` pages; returns the upper half, which is used now (5.5)."""
        upper = self.tree.cut(node, pages)
        self.copies.split(node, upper)
        if not self.rules.split_keeps_hits:
            upper.hits = 0
        upper.stamp = self.tree.tick()
        self.counters["splits"] += 1
        return upper

    # locks and room --------------------------------------------------------------------------------
    def lock(self, node: Node | None) -> None:
        """Pin a node and its ancestors on device."""
        if node is not None:
            for step in node.path():
                step.lock += 1

    def unlock(self, node: Node | None) -> None:
        """Undo one lock()."""
        if node is not None:
            for step in node.path():
                step.lock -= 1

    def evictable_pages(self) -> int:
        """Device pages that no request and no copy pins.

        A node that was unlocked too often counts once more each time, as in a running total.
        """
        free = (n for n in self.tree.nodes() if n.device is not None and n.lock <= 0)
        return sum(len(n) * (1 - n.lock) for n in free)

    def locked_pages(self) -> int:
        """Device pages of the tree that a request or a copy pins."""
        return sum(len(n) for n in self.tree.nodes() if n.device is not None and n.lock > 0)

    def copy_content(self, source: Pool, sources: list[int], target: Pool, targets: list[int]) -> None:
        """Move page contents between pools, page by page (a seam for faults of the copy)."""
        for left, right in zip(sources, targets, strict=True):
            target.content[right] = source.content[left]

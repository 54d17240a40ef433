"""The tiered cache of 0.5.23: one tree core for every model (engine-0.5.23 section 1)."""

from __future__ import annotations

from tierfuzz.events import Tier
from tierfuzz.model.cache import TieredCache
from tierfuzz.model.config import EngineConfig
from tierfuzz.model.copies import Copy
from tierfuzz.model.eviction import Staged
from tierfuzz.model.node import Node, common_pages
from tierfuzz.model.rules import Rules
from tierfuzz.model.sequence import PageRun


class UnifiedCache(TieredCache):
    """Ancestors are backed up with a node; write_back gives up second copies before it loses any."""

    def __init__(self, config: EngineConfig, rules: Rules) -> None:
        super().__init__(config, rules)
        self.doubles: dict[int, Node] = {}  # nodes in both tiers, in order of becoming so; may be stale

    # walks -----------------------------------------------------------------------------------------
    def match(self, namespace: str, run: PageRun) -> list[Node]:
        """The matched path gets new stamps; the unmatched rest of a split one just before (B13)."""
        path: list[Node] = []
        node, at = self.tree.root(namespace), 0
        while at < len(run) and (child := node.children.get(run.hashes[at])) is not None:
            shared = common_pages(child.run.hashes, run.hashes, at)
            if shared < len(child):
                path.append(self.split(child, shared))
                if self.rules.refresh_remainder:
                    child.stamp = self.tree.tick()
                break
            path.append(child)
            node, at = child, at + shared
        for step in path:
            step.stamp = self.tree.tick()
        return path

    def _step(self, child: Node, run: PageRun, at: int) -> Node:
        shared = common_pages(child.run.hashes, run.hashes, at)
        if shared == len(child):
            child.stamp = self.tree.tick()
            return child
        upper = self.split(child, shared)
        if self.rules.refresh_remainder:
            child.stamp = self.tree.tick()
        return upper

    def split(self, node: Node, pages: int) -> Node:
        """As before; the upper half of a node in both tiers is noted last."""
        upper = super().split(node, pages)
        if id(node) in self.doubles:
            self.note_double(upper)
        return upper

    # backup ----------------------------------------------------------------------------------------
    def backup(self, node: Node) -> bool:
        """Issue copies of the node and of every ancestor that has none, from the root down."""
        for step in reversed([step for step in node.path() if not step.backed]):
            if not self.reserve_host(len(step)):
                return False
            self.issue_backup(step)
        return True

    # load-back -------------------------------------------------------------------------------------
    def load_node(self, node: Node) -> None:
        """Loaded nodes keep their host copies pinned until the ack."""
        super().load_node(node)
        node.pins += 1

    def acknowledge(self, copy: Copy) -> None:
        """A load's ack unpins the host copies and notes the nodes as being in both tiers."""
        super().acknowledge(copy)
        if copy.kind == "load":
            for node in reversed(copy.nodes):
                node.pins -= 1
                self.note_double(node)

    def revive(self, node: Node, slots: list[int]) -> None:
        """A revived node is in both tiers."""
        super().revive(node, slots)
        self.note_double(node)

    def note_double(self, node: Node) -> None:
        """The node is in both tiers now; one that is noted already keeps its place."""
        if self.config.policy == "write_back":
            self.doubles.setdefault(id(node), node)

    # eviction --------------------------------------------------------------------------------------
    def stage(self, node: Node, staged: Staged) -> bool:
        """Victim by victim: copy, host store, device removal."""
        done = super().stage(node, staged)
        if done and node.backed:
            self.note_double(node)
        return done

    def drop(self, node: Node, staged: Staged) -> bool:
        """Descendants first, youngest last; declined while one is locked or in transfer."""
        del staged  # nothing is ever staged here
        assert node.device is not None
        below = list(node.descendants())
        if any(child.pins or child.lock for child in below):
            return False
        for child in reversed(below):
            self.free_host(child)
            self.doubles.pop(id(child), None)
        self.emit_remove(node, Tier.DEVICE)
        self.device.give(node.device)
        node.device = None
        node.detach()
        self.doubles.pop(id(node), None)
        self.counters["dropped_tokens"] += len(node) * self.page_size
        return True

    def evict_host(self, pages: int) -> int:
        """write_back gives up second copies of on-device nodes first, then host leaves go."""
        freed = self._reclaim(pages) if self.config.policy == "write_back" else 0
        return freed + (super().evict_host(pages - freed) if freed < pages else 0)

    def _reclaim(self, pages: int) -> int:
        freed = 0
        for spare_leaves in (True, False):
            for key, node in list(self.doubles.items()):
                if freed >= pages:
                    return freed
                if node.device is None or node.host is None:
                    del self.doubles[key]
                elif not node.pins and not (spare_leaves and not node.has_device_child()):
                    freed += len(node)
                    self.free_host(node)
                    del self.doubles[key]
        return freed

    def host_evictable(self) -> int:
        """Second copies count as evictable under write_back."""
        doubles = sum(len(n) for n in self.doubles.values() if n.device is not None and n.host and not n.pins)
        return super().host_evictable() + doubles

    def _host_victim(self, node: Node) -> bool:
        return not node.is_root and node.host_only and not node.pins and not node.lock and not node.children

    def remove_host(self, node: Node) -> None:
        """A host leaf leaves the tree."""
        super().remove_host(node)
        self.doubles.pop(id(node), None)

    def clear(self) -> None:
        """Nothing is in both tiers after a flush."""
        super().clear()
        self.doubles.clear()

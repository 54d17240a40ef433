"""Eviction of whole nodes from device and from host (reference 4, 5.5, 5.7)."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from tierfuzz.events import Tier
from tierfuzz.model.node import Node
from tierfuzz.model.pools import EngineCrash
from tierfuzz.model.state import CacheState

Staged = list[tuple[Node, list[int]]]


class Eviction(CacheState):
    """Makes room: least recently used leaves first, whole nodes, parents after their last child."""

    # device ----------------------------------------------------------------------------------------
    def evict_device(self, tokens: int) -> int:
        """Free at least `tokens` tokens of device pages where possible; returns the tokens freed."""
        staged: Staged = []
        freed = 0
        heap = [(n.stamp, n.run.hashes[0], n) for n in self.tree.nodes() if self._device_victim(n)]
        heapq.heapify(heap)
        while heap and freed < tokens:
            node = heapq.heappop(heap)[2]
            if not self._device_victim(node) or not self.evict_node(node, staged):
                continue
            freed += len(node) * self.page_size
            parent = node.parent
            if parent is not None and self.rules.parent_joins_device and self._device_victim(parent):
                heapq.heappush(heap, (parent.stamp, parent.run.hashes[0], parent))
        self.commit(staged)
        self.counters["device_evictions"] += 1
        self.counters["evicted_tokens"] += freed
        return freed

    def _device_victim(self, node: Node) -> bool:
        return node.device is not None and not node.is_root and node.lock <= 0 and not node.has_device_child()

    def evict_node(self, node: Node, staged: Staged) -> bool:
        """Take one victim off device; False when it has to stay."""
        if node.backed:
            self.demote(node)
            return True
        if self.config.policy == "write_back":
            return self.stage(node, staged)
        self.discard(node)
        return True

    def demote(self, node: Node) -> None:
        """A node with a host copy leaves the device and stays on host."""
        assert node.device is not None
        self.emit_remove(node, Tier.DEVICE)
        self.device.give(node.device)
        node.device = None

    def discard(self, node: Node) -> None:
        """A node without a host copy leaves the device and the tree."""
        assert node.device is not None
        if node.children:
            raise EngineCrash("device eviction: an unbacked leaf has children (B3)")
        self.emit_remove(node, Tier.DEVICE)
        self.device.give(node.device)
        node.detach()

    # write_back: copy at eviction -----------------------------------------------------------------
    def stage(self, node: Node, staged: Staged) -> bool:
        """write_back: the victim gets host slots, or is dropped where the host has no room (4)."""
        assert node.device is not None
        if not self.reserve_host(len(node)):
            return self.rules.drop_when_full and self.drop(node, staged)
        node.host = self.host.take(len(node))
        self.copy_content(self.device, node.device, self.host, node.host)
        slots, node.device, node.staged = node.device, None, True
        if self.rules.removal_first:
            self.emit_remove(node, Tier.DEVICE)
        staged.append((node, slots))
        if not self.rules.staged_at_end:
            self.commit(staged)
        return True

    def commit(self, staged: Staged) -> None:
        """Staged copies are done: host stores go out, device slots come back."""
        order = staged if self.rules.child_first_host_stores else sorted(staged, key=lambda s: _depth(s[0]))
        for node, slots in order:
            self.emit_store(node, Tier.HOST)
            if not self.rules.removal_first:
                self.emit_remove(node, Tier.DEVICE)
            self.device.give(slots)
            node.staged = False
            self.write_storage(node)
            self.counters["backup_tokens"] += len(node) * self.page_size
        staged.clear()

    def drop(self, node: Node, staged: Staged) -> bool:
        """No host room: the victim and its host-only descendants are lost; False when a load pins one."""
        assert node.device is not None
        if self.rules.drop_commits_first:
            self.commit(staged)
        below = list(node.descendants())
        if any(child.pins or child.staged for child in below):
            return False
        self.emit_remove(node, Tier.DEVICE)
        self.device.give(node.device)
        node.device = None
        for child in below:
            self.free_host(child)
        node.detach()
        self.counters["dropped_tokens"] += len(node) * self.page_size
        return True

    def write_storage(self, node: Node) -> None:
        """Storage gets the pages of a node whose copy has landed (5.8)."""
        if self.config.storage is None or node.host is None:
            return
        keys = [self.storage_key(node.namespace, page_hash) for page_hash in node.run.hashes]
        announced = self.rules.storage_events and not any(key in self.storage for key in keys)
        for key, slot in zip(keys, node.host, strict=True):
            self.storage[key] = self.host.content[slot]
        if announced:
            self.emit_store(node, Tier.STORAGE)

    def storage_key(self, namespace: str, page_hash: int) -> tuple[str, int]:
        """Key of a page in storage (B6: without its namespace)."""
        return ("" if self.rules.storage_ignores_namespace else namespace, page_hash)

    # host ------------------------------------------------------------------------------------------
    def reserve_host(self, pages: int) -> bool:
        """Make host room for `pages` pages; False when there is none, though some may have been lost."""
        short = pages - self.host.free
        if short <= 0:
            return True
        if not self.rules.futile_host_eviction and self.host_evictable() < short:
            return False
        self.evict_host(pages if self.rules.host_evicts_full else short)
        return self.host.free >= pages

    def host_evictable(self) -> int:
        """Host pages that an eviction could free at most."""
        blocked: set[int] = set()
        for node in self.tree.nodes():
            if not self._spare(node) and (node.backed or not self._reclaims):
                blocked.update(id(step) for step in node.path())
        return sum(len(n) for n in self.tree.nodes() if n.backed and id(n) not in blocked)

    def _spare(self, node: Node) -> bool:
        """The host copy may go, as far as the node itself is concerned."""
        staged = node.staged and self.rules.staged_host_protected
        return (node.host_only or self._mirror(node)) and not node.pins and not staged

    @property
    def _reclaims(self) -> bool:
        return self.rules.mirrors_reclaimable and self.config.policy != "write_back"

    def _mirror(self, node: Node) -> bool:
        """A second copy that may be given up: nobody uses the node."""
        return self._reclaims and node.backed and node.device is not None and not node.lock

    def evict_host(self, pages: int) -> int:
        """Free at least `pages` pages of host-only nodes where possible; returns the pages freed (5.7)."""
        freed = self._evict_host_leaves(pages, self._host_victim, self.remove_host)
        if freed < pages and self._reclaims:
            freed += self._evict_host_leaves(pages - freed, self._mirror_victim, self.free_host)
        self.counters["host_evicted_tokens"] += freed * self.page_size
        return freed

    def _evict_host_leaves(
        self, pages: int, victim: Callable[[Node], bool], evict: Callable[[Node], None]
    ) -> int:
        freed = 0
        heap = [(n.stamp, n.run.hashes[0], n) for n in self.tree.nodes() if victim(n)]
        heapq.heapify(heap)
        while heap and freed < pages:
            node = heapq.heappop(heap)[2]
            parent = node.parent
            freed += len(node)
            evict(node)
            if parent is not None and self.rules.parent_joins_host and victim(parent):
                heapq.heappush(heap, (parent.stamp, parent.run.hashes[0], parent))
        return freed

    def _mirror_victim(self, node: Node) -> bool:
        """Second copies, children first: a copy whose parent has none could not be reached."""
        return self._mirror(node) and self._spare(node) and not any(c.backed for c in node.children.values())

    def _host_victim(self, node: Node) -> bool:
        if node.is_root or not node.host_only or node.pins:
            return False
        if node.staged and self.rules.staged_host_protected:
            return False
        return not any(child.backed for child in node.children.values())

    def remove_host(self, node: Node) -> None:
        """A host-only leaf leaves the host and the tree."""
        self.free_host(node)
        node.detach()

    def free_host(self, node: Node) -> None:
        """The host copy of a node is gone."""
        assert node.host is not None
        self.emit_remove(node, Tier.HOST)
        self.host.give(node.host)
        node.host = None


def _depth(node: Node) -> int:
    return sum(1 for _ in node.path())

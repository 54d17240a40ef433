"""The tiered cache: insert, backup, acknowledgement, load-back, flush (reference 4, 5.2-5.6)."""

from __future__ import annotations

from collections.abc import Sequence

from tierfuzz.events import AllBlocksCleared, Tier
from tierfuzz.model.copies import Copy
from tierfuzz.model.eviction import Eviction
from tierfuzz.model.node import Node, Tree, common_pages
from tierfuzz.model.sequence import PageRun


class TieredCache(Eviction):
    """One worker's cache of version 0.5.17's shape."""

    # insert ----------------------------------------------------------------------------------------
    def insert(
        self, namespace: str, run: PageRun, slots: Sequence[int], counted: bool, known: int = 0
    ) -> list[int]:
        """Put pages into the tree; `slots` are the request's own, or the tree's where it took them there.

        `known`: pages that this request inserted before. Returns the slots that turned out duplicates.
        """
        node, at = self.tree.root(namespace), 0
        duplicates: list[int] = []
        while at < len(run) and (child := node.children.get(run.hashes[at])) is not None:
            node = self._step(child, run, at)
            mine = list(slots[at : at + len(node)])
            at += len(node)
            if node.device is None:
                self.revive(node, mine)
                continue
            duplicates += [own for own, held in zip(mine, node.device, strict=True) if own != held]
            if counted and (at > known or self.rules.two_hits_a_request):
                self.hit(node)
        if at < len(run):
            self._grow(node, run[at:], list(slots[at:]), counted)
        return duplicates

    def _step(self, child: Node, run: PageRun, at: int) -> Node:
        shared = common_pages(child.run.hashes, run.hashes, at)
        partial = shared < len(child)
        if self.rules.insert_refreshes and (not partial or self.rules.refresh_remainder):
            child.stamp = self.tree.tick()
        return self.split(child, shared) if partial else child

    def _grow(self, parent: Node, run: PageRun, slots: list[int], counted: bool) -> None:
        node = self.tree.add(parent, run)
        node.device = slots
        self.emit_store(node, Tier.DEVICE)
        if counted:
            self.hit(node)

    def revive(self, node: Node, slots: list[int]) -> None:
        """A host-only node gets the recomputed pages of a request (B7: without an event)."""
        node.device = slots
        self.counters["revivals"] += 1
        if not self.rules.silent_revival:
            self.emit_store(node, Tier.DEVICE)

    # backup ----------------------------------------------------------------------------------------
    def hit(self, node: Node) -> None:
        """A counted hit: the node is backed up once it has enough of them."""
        node.hits += 1
        if self.config.policy != "write_back" and not node.backed and node.hits >= self._threshold():
            self.backup(node)

    def _threshold(self) -> int:
        return 1 if self.config.policy == "write_through" else self.rules.selective_threshold

    def backup(self, node: Node) -> bool:
        """Issue the copy of a node to host; False when it is skipped or the host has no room (4)."""
        assert node.parent is not None
        self.lock(node.parent)  # its own host copy is no room for this one
        copied = self._may_back_up(node) and self.reserve_host(len(node))
        self.unlock(node.parent)
        if copied:
            self.issue_backup(node)
        node.failed = not copied
        return copied

    def issue_backup(self, node: Node) -> None:
        """Host slots are taken now, the host store goes out at the ack; the device copy is pinned."""
        assert node.device is not None
        node.host = self.host.take(len(node))
        self.copy_content(self.device, node.device, self.host, node.host)
        self.lock(node)
        self.copies.issue("backup", [node], node.namespace)

    def _may_back_up(self, node: Node) -> bool:
        parent = node.parent
        assert parent is not None
        if node.failed and not self.rules.retry_failed_backup:
            return False
        if self.rules.child_waits_parent_ack and any(parent in copy.nodes for copy in self.copies.pending):
            return False
        return parent.is_root or parent.backed or not self.rules.backup_needs_parent

    def acknowledge(self, copy: Copy) -> None:
        """A copy has landed: host stores go out, locks are given back."""
        if copy.kind == "backup":
            for node in copy.nodes:
                self.emit_store(node, Tier.HOST)
                self.counters["backup_tokens"] += len(node) * self.page_size
                self.write_storage(node)
        self.unlock(copy.nodes[-1])

    # load-back -------------------------------------------------------------------------------------
    def load_back(self, anchor: Node | None, nodes: list[Node]) -> bool:
        """Bring host-only `nodes` (below `anchor`) to the device, all or nothing (5.6)."""
        pages = sum(len(node) for node in nodes)
        if pages * self.page_size < self.rules.load_back_threshold:
            self.counters["declined_load_backs"] += 1
            return False
        self._make_room(anchor, nodes, pages)
        if self.device.free < pages:
            self.counters["failed_load_backs"] += 1
            return False
        for node in nodes:
            self.load_node(node)
        self.lock(nodes[-1])
        self.copies.issue("load", list(nodes), nodes[-1].namespace)
        self.counters["load_backs"] += 1
        self.counters["load_back_tokens"] += pages * self.page_size
        return True

    def _make_room(self, anchor: Node | None, nodes: list[Node], pages: int) -> None:
        short = pages - self.device.free
        if short <= 0:
            return
        protected = nodes if self.rules.load_back_protects else []
        for node in protected:
            node.pins += 1
        self.lock(anchor)
        self.evict_device((pages if self.rules.load_back_evicts_full else short) * self.page_size)
        self.unlock(anchor)
        for node in protected:
            node.pins -= 1

    def load_node(self, node: Node) -> None:
        """One node gets device slots; its device store goes out before the copy runs (4)."""
        assert node.host is not None
        node.device = self.device.take(len(node))
        self.copy_content(self.host, node.host, self.device, node.device)
        self.emit_store(node, Tier.DEVICE)
        if not self.rules.load_back_keeps_host:
            self.free_host(node)

    # flush -----------------------------------------------------------------------------------------
    def clear(self) -> None:
        """Empty device, host and tree; storage stays (2.3)."""
        self.tree = Tree()
        self.device.reset()
        self.host.reset()
        self.copies.clear()
        self.emit(AllBlocksCleared(), "")

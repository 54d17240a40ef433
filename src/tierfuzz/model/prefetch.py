"""Prefetch from storage into the host tier while a request waits (reference 5.8, wait_complete)."""

from __future__ import annotations

from tierfuzz.events import Tier
from tierfuzz.model.copies import Copy
from tierfuzz.model.node import Node, common_pages
from tierfuzz.model.request import Active, Request
from tierfuzz.model.running import Running
from tierfuzz.model.sequence import PageRun


class Prefetch:
    """Pages first .. first+len(run)-1 of a request on their way to the host `slots`, below `anchor`."""

    def __init__(self, copy: Copy, anchor: Node, first: int, run: PageRun, slots: list[int]) -> None:
        self.copy = copy
        self.anchor = anchor
        self.first = first
        self.run = run
        self.slots = slots


class Prefetching(Running):
    """Looks a request's missing pages up in storage when it is queued."""

    def enqueue(self, request: Request) -> None:
        """Queue a request and start its prefetch where that is worth it."""
        super().enqueue(request)
        if self.config.storage is not None:
            self._start_prefetch(self.waiting[-1])

    def _start_prefetch(self, active: Active) -> None:
        limit = self.matchable_pages(active)
        run = active.sequence.run(limit)
        path = self.cache.match(active.request.namespace, run)
        first = sum(len(node) for node in path)
        anchor = path[-1] if path else self.cache.tree.root(self._landing_namespace(active))
        if not anchor.is_root and not anchor.backed:
            return  # the chain could not be continued below it (B10)
        hit = self._room_for(self.stored_pages(active.request.namespace, run[first:]), anchor)
        if hit:
            self._issue(active, anchor, first, run[first : first + hit])

    def _landing_namespace(self, active: Active) -> str:
        return "" if self.rules.storage_lands_at_root else active.request.namespace

    def stored_pages(self, namespace: str, run: PageRun) -> int:
        """Consecutive pages of `run` that storage has, if they are worth a prefetch."""
        assert self.config.storage is not None
        found = 0
        for page_hash in run.hashes:
            if self.cache.storage_key(namespace, page_hash) not in self.cache.storage:
                break
            found += 1
        return found if found * self.config.page_size >= self.config.storage.threshold else 0

    def _room_for(self, hit: int, anchor: Node) -> int:
        """Host pages that this prefetch gets, after evicting for it (B18)."""
        assert self.config.storage is not None
        host = self.cache.host
        if host.free < hit:
            self._pin(anchor, 1)
            self.cache.evict_host(hit if self.rules.storage_evicts_full else hit - host.free)
            self._pin(anchor, -1)
        got = min(hit, host.free)
        worth = got == hit or got * self.config.page_size >= self.config.storage.threshold
        return got if worth else 0

    def _pin(self, anchor: Node, by: int) -> None:
        for node in anchor.path():
            node.pins += by

    def _issue(self, active: Active, anchor: Node, first: int, run: PageRun) -> None:
        cache = self.cache
        slots = cache.host.take(len(run))
        for page_hash, slot in zip(run.hashes, slots, strict=True):
            cache.host.content[slot] = cache.storage[cache.storage_key(active.request.namespace, page_hash)]
        self._pin(anchor, 1)
        copy = cache.copies.issue("prefetch", [], active.request.namespace)
        active.prefetch = Prefetch(copy, anchor, first, run, slots)

    # landing ---------------------------------------------------------------------------------------
    def landed(self, copy: Copy) -> None:
        """A prefetch enters the tree; other copies are the cache's."""
        if copy.kind != "prefetch":
            super().landed(copy)
            return
        for active in self.waiting:
            if active.prefetch is not None and active.prefetch.copy is copy:
                self._land(active, active.prefetch)

    def _land(self, active: Active, prefetch: Prefetch) -> None:
        self._pin(prefetch.anchor, -1)
        found = self.refill(prefetch.anchor, prefetch.run, prefetch.slots)
        active.prefetch = None
        active.fetched = (prefetch.first, prefetch.first + len(prefetch.run))
        active.loaded_from_storage = (len(prefetch.run) - found) * self.config.page_size

    def refill(self, anchor: Node, run: PageRun, slots: list[int]) -> int:
        """Insert prefetched pages below `anchor`; returns the pages that were there already (5.8)."""
        cache, node, at = self.cache, anchor, 0
        while at < len(run) and (child := node.children.get(run.hashes[at])) is not None:
            child.stamp = cache.tree.tick()
            shared = common_pages(child.run.hashes, run.hashes, at)
            node = cache.split(child, shared) if shared < len(child) else child
            at += shared
        cache.host.give(slots[:at])
        if at < len(run):
            node = cache.tree.add(node, run[at:])
            node.host = slots[at:]
            cache.emit_store(node, Tier.HOST)
            cache.counters["prefetched_tokens"] += len(node) * self.config.page_size
        return at

    def prefetch_landed(self, active: Active) -> bool:
        """True when nothing is on its way for this request."""
        return active.prefetch is None

    def forget_prefetch(self, active: Active) -> None:
        """The request is gone: its host slots come back, and the copy is not awaited."""
        if active.prefetch is not None:
            self._pin(active.prefetch.anchor, -1)
            self.cache.host.give(active.prefetch.slots)
            self.cache.copies.cancel(active.prefetch.copy)
            active.prefetch = None

"""Admission and launching: match, load-back, room, chunks, decode steps (reference 5.1-5.6, 6.1)."""

from __future__ import annotations

from tierfuzz.model.batch import DecodeBatch, PrefillBatch
from tierfuzz.model.compute import read_prefix, sample, write_pages
from tierfuzz.model.node import Node
from tierfuzz.model.prefetch import Prefetching
from tierfuzz.model.request import Active


class Admission(Prefetching):
    """Turns waiting requests into prefill batches and running ones into decode steps."""

    # prefill ---------------------------------------------------------------------------------------
    def next_prefill(self) -> PrefillBatch | None:
        """Examine the chunked request, then the waiting ones in order, while room and budget last."""
        budget = self.config.chunked_prefill if self.config.chunked_prefill > 0 else 1 << 60
        chosen: list[tuple[Active, int]] = []
        chunked, self.chunked = self.chunked, None
        if chunked is not None:
            budget = self._add(chunked, chosen, budget)
        for active in [a for a in self.waiting if self.prefetch_landed(a)]:
            full = len(self.running) + len(chosen) >= self.config.max_running
            if budget <= 0 or self.chunked is not None or full or not self._admit(active, chosen):
                break
            self.waiting.remove(active)
            budget = self._add(active, chosen, budget)
        if not chosen:
            return None
        self._launch_prefill(chosen)
        return PrefillBatch([active for active, _ in chosen], self.chunked)

    def _admit(self, active: Active, chosen: list[tuple[Active, int]]) -> bool:
        """Match and load back; False when the request has to wait."""
        device, host = self.match_prompt(active)
        anchor = device[-1] if device else None
        self.cache.lock(anchor)  # what this request will use is no room for it
        fits = self._fits(active, device, chosen)
        loaded = fits and bool(host) and self.cache.load_back(anchor, host)
        self.cache.unlock(anchor)
        if fits:
            self.start(active, device + (host if loaded else []), host, loaded)
        return fits

    def _fits(self, active: Active, device: list[Node], chosen: list[tuple[Active, int]]) -> bool:
        size = self.config.page_size
        cached = sum(len(node) for node in device) * size
        return active.prompt_length - cached + self._output_reserve(active) + size < self._room(chosen)

    def _output_reserve(self, active: Active) -> int:
        return min(active.request.max_new - len(active.reported), self.config.output_reserve)

    def _room(self, chosen: list[tuple[Active, int]]) -> int:
        """Tokens that could be freed, less what admitted requests may still take (5.5)."""
        size = self.config.page_size
        held = (self.cache.device.free + self.cache.evictable_pages()) * size
        running = sum(max(0, self._output_reserve(a)) + size for a in self.running if not a.finished)
        admitted = sum(extend + self._output_reserve(a) + size for a, extend in chosen)
        return held - running - admitted

    def _add(self, active: Active, chosen: list[tuple[Active, int]], budget: int) -> int:
        """Plan the next tokens of a request; sets `chunked` when the prompt does not fit the budget."""
        extend = active.prompt_length - active.computed
        if self.rules.loaded_take_budget and active.split and active.computed == active.prefix:
            budget = max(self.config.page_size, budget - active.split.host)
        if extend > budget:
            extend = budget - budget % self.config.page_size
            self.chunked = active
        if extend <= 0:
            self.chunked = active
            return 0
        chosen.append((active, extend))
        return budget - extend

    def _launch_prefill(self, chosen: list[tuple[Active, int]]) -> None:
        size = self.config.page_size
        self.make_room_for_prefill([(active, extend) for active, extend in chosen])
        for active, extend in chosen:
            start, stop = active.computed, active.computed + extend
            self.allocate(active, -(-stop // size) - len(active.slots))
            if start == active.prefix:
                read_prefix(active, self.cache.device, size)
            write_pages(active, self.cache.device, start, stop, size)
            active.computed = active.committed = stop
            if active.prefilled:
                self._sample(active)

    def make_room_for_prefill(self, chosen: list[tuple[Active, int]]) -> None:
        """Evict the shortfall of a prefill batch (5.5)."""
        size, rules = self.config.page_size, self.rules
        free = self.cache.device.free * size
        pages = sum(-(-(a.computed + extend) // size) - len(a.slots) for a, extend in chosen)
        if rules.exact_fit_evicts:
            tokens = sum(extend for _, extend in chosen)
            tokens += len(chosen) * self._extra_slots(chosen)
        else:
            tokens = pages * size
        if tokens > free:
            self.cache.evict_device(tokens - free)

    def _extra_slots(self, chosen: list[tuple[Active, int]]) -> int:
        if self.config.page_size == 1:
            return self.rules.single_slot_extra
        if not self.rules.chunk_extra_page and any(a.computed + e < a.prompt_length for a, e in chosen):
            return 0
        return self.config.page_size

    def _sample(self, active: Active) -> None:
        token = sample(active, active.committed, self.config.page_size)
        active.sampled.append(token)
        active.sequence.append(token)

    # decode ----------------------------------------------------------------------------------------
    def next_decode(self) -> DecodeBatch | None:
        """One decode step of everything that runs, unless all of it is prefill only (5.2)."""
        actives = [active for active in self.running if self._decodes(active)]
        if not actives or all(active.request.max_new == 0 for active in actives):
            return None
        while not self._make_room_for_decode(actives):
            if len(self.cache.copies) or len(actives) == 1:
                return None  # pages that copies pin will come back
            self._retract(actives)
        size = self.config.page_size
        for active in actives:
            if active.committed % size == 0:
                self.allocate(active, 1)
            start = active.committed
            active.committed += 1
            write_pages(active, self.cache.device, start, active.committed, size)
            self._sample(active)
        return DecodeBatch(actives)

    def _decodes(self, active: Active) -> bool:
        if active.finished:
            return False
        return not self.rules.last_output_not_decoded or len(active.sampled) < active.request.max_new

    def _retract(self, actives: list[Active]) -> None:
        """The request with the fewest outputs gives its pages back and waits again (6.3)."""
        victim = min(actives, key=lambda active: (len(active.reported), -active.prompt_length))
        actives.remove(victim)
        self.running.remove(victim)
        self.release(victim, keep=victim.owned_from)
        self.waiting.append(victim.again())
        self.cache.counters["retractions"] += 1

    def _make_room_for_decode(self, actives: list[Active]) -> bool:
        """Room for one step; False when what is pinned leaves none."""
        size, free = self.config.page_size, self.cache.device.free
        needed = sum(active.committed % size == 0 for active in actives)
        wanted = len(actives) if self.rules.decode_reserves_always else needed
        if wanted > free:
            self.cache.evict_device((wanted - free) * size)
        return self.cache.device.free >= needed

"""A consumer small enough to be seen through: a trie by tokens, with one fault at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from tierfuzz.codec import decode_batch
from tierfuzz.events import AllBlocksCleared, BlockStored, Tier

Key = tuple[int, int, Tier, int]  # worker, rank, tier, block
Where = tuple[int, int, int | None, tuple[int, ...]]  # worker, rank, block before, tokens


class StandIn:
    """Sets of blocks per worker, rank and tier; `fault` names what it gets wrong."""

    def __init__(self, fault: str = "") -> None:
        self.name, self.fault = fault or "stand-in", fault
        self.size = 0
        self.copies: defaultdict[Key, int] = defaultdict(int)
        self.block_at: dict[Where, int] = {}
        self.sources: set[tuple[int, int]] = set()
        self.missed: dict[tuple[int, int], int] = {}
        self.told: set[tuple[int, int, int]] = set()

    def register(self, worker: int, page_size: int, ranks: int = 1) -> None:
        del worker, ranks
        self.size = page_size

    def wanted(self) -> list[tuple[int, int, int]]:
        """`late` loses every other message and asks for it; `deaf` does not ask."""
        wishes = [(*source, seq) for source, seq in self.missed.items()] if self.fault == "late" else []
        self.missed.clear()
        return wishes

    def deliver(self, worker: int, rank: int, seq: int, payload: bytes) -> None:
        if self.fault == "one-cache":
            worker, rank = 0, 0
        if self.fault in ("late", "deaf") and seq % 2 and (worker, rank, seq) not in self.told:
            self.told.add((worker, rank, seq))
            self.missed[worker, rank] = seq
            return
        self.sources.add((worker, rank))
        for event in decode_batch(seq, payload).events:
            if isinstance(event, AllBlocksCleared):
                if self.fault != "clear-ignored":
                    self._drop(worker, rank)
            elif isinstance(event, BlockStored):
                self._store(worker, rank, event)
            else:
                for block in event.hashes:
                    self._remove(worker, rank, event.tier, block)

    def _drop(self, worker: int, rank: int) -> None:
        for key in [key for key in self.copies if key[:2] == (worker, rank)]:
            del self.copies[key]

    def _store(self, worker: int, rank: int, event: BlockStored) -> None:
        orphan = event.parent is not None and not self._held(worker, rank, event.parent)
        if self.fault == "orphan-dropped" and orphan:
            return
        if self.fault == "crash" and event.parent is not None and event.tier is Tier.HOST:
            raise KeyError(event.parent)
        parent = None if orphan and self.fault == "orphan-at-root" else event.parent
        tier = Tier.DEVICE if self.fault == "host-as-device" else event.tier
        for index, block in enumerate(event.hashes):
            tokens = event.tokens[index * self.size : (index + 1) * self.size]
            self.block_at[worker, rank, parent, tokens] = block
            key = (worker, rank, tier, block)
            self.copies[key] = self.copies[key] + 1 if self.fault == "counts" else 1
            parent = block

    def _remove(self, worker: int, rank: int, tier: Tier, block: int) -> None:
        tiers = tuple(Tier) if self.fault == "tier-blind" else (tier,)
        for one in tiers:
            key = (worker, rank, one, block)
            if self.copies[key]:
                self.copies[key] -= 1

    def _held(self, worker: int, rank: int, block: int) -> bool:
        return any(self.copies.get((worker, rank, tier, block)) for tier in Tier)

    def overlap(self, tokens: Sequence[int], namespace: str = "") -> dict[tuple[int, int], dict[Tier, int]]:
        del namespace
        return {
            source: {tier: self._leading(source, tier, tokens) for tier in Tier} for source in self.sources
        }

    def _leading(self, source: tuple[int, int], tier: Tier, tokens: Sequence[int]) -> int:
        parent: int | None = None
        for count in range(len(tokens) // self.size):
            page = tuple(tokens[count * self.size : (count + 1) * self.size])
            block = self.block_at.get((*source, parent, page))
            if block is None or not self.copies.get((*source, tier, block)):
                return count
            parent = block
        return len(tokens) // self.size

"""The ledger: what the events of a worker claim, per rank and tier, as counts per block hash."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import msgspec

from tierfuzz.events import AllBlocksCleared, Batch, BlockRemoved, BlockStored, Tier

ANOMALY_SLUGS = ("orphan-parent", "parent-not-in-tier", "self-parent", "unmatched-removal", "duplicate-store")


class Anomaly(msgspec.Struct, frozen=True):
    """An event that does not fit what came before it. `slug` is stable; `hash` the block concerned.

    duplicate-store may be honest where two namespaces share their hashes (reference 7, B6c), and
    parent-not-in-tier where children are copied first (E5). Wrong media are faults of the codec.
    """

    slug: str
    hash: int
    tier: Tier
    rank: int
    seq: int
    detail: str


@dataclass
class _Shelf:
    """One tier of one rank: copies by block, and their sum."""

    counts: dict[int, int] = field(default_factory=dict)
    copies: int = 0


class Ledger:
    """Counts of one worker. Sets would lose blocks that two namespaces hold under one hash (B6c)."""

    def __init__(self) -> None:
        self._shelves: defaultdict[tuple[int, Tier], _Shelf] = defaultdict(_Shelf)
        self._held: defaultdict[int, dict[int, int]] = defaultdict(dict)  # by rank: copies in any tier
        self.totals: Counter[str] = Counter()

    def apply(self, batch: Batch) -> list[Anomaly]:
        """Book one batch; returns what did not fit, in order."""
        anomalies: list[Anomaly] = []
        for event in batch.events:
            if isinstance(event, BlockStored):
                self._store(event, batch, anomalies)
            elif isinstance(event, BlockRemoved):
                self._remove(event, batch, anomalies)
            elif isinstance(event, AllBlocksCleared):
                self._clear_rank(batch.rank)
        return anomalies

    def _store(self, event: BlockStored, batch: Batch, anomalies: list[Anomaly]) -> None:
        tier, rank = event.tier, batch.rank
        shelf, held = self._shelves[rank, tier], self._held[rank]
        if event.parent is not None:
            self._check_parent(event, batch, anomalies)
        counts = shelf.counts
        for block in event.hashes:
            before = counts.get(block, 0)
            if before:
                detail = f"stored again while {before} copies are held"
                anomalies.append(Anomaly("duplicate-store", block, tier, rank, batch.seq, detail))
            counts[block] = before + 1
            held[block] = held.get(block, 0) + 1
        shelf.copies += len(event.hashes)
        self.totals[f"stored-{tier}"] += len(event.hashes)

    def _check_parent(self, event: BlockStored, batch: Batch, anomalies: list[Anomaly]) -> None:
        parent, tier, rank = event.parent, event.tier, batch.rank
        if parent in event.hashes:
            slug, detail = "self-parent", f"parent {parent} is one of the blocks that are stored after it"
        elif parent not in self._held[rank]:
            slug, detail = "orphan-parent", f"parent {parent} is held in no tier"
        elif parent not in self._shelves[rank, tier].counts:
            slug, detail = "parent-not-in-tier", f"parent {parent} is held, but not in this tier"
        else:
            return
        anomalies.append(Anomaly(slug, event.hashes[0], tier, rank, batch.seq, detail))

    def _remove(self, event: BlockRemoved, batch: Batch, anomalies: list[Anomaly]) -> None:
        tier, rank = event.tier, batch.rank
        shelf, held = self._shelves[rank, tier], self._held[rank]
        counts = shelf.counts
        for block in event.hashes:
            if block not in counts:
                detail = "removed although no copy was announced in this tier"
                anomalies.append(Anomaly("unmatched-removal", block, tier, rank, batch.seq, detail))
                continue
            _take_one(counts, block)
            _take_one(held, block)
            shelf.copies -= 1
        self.totals[f"removed-{tier}"] += len(event.hashes)

    def _clear_rank(self, rank: int) -> None:
        for key in [key for key in self._shelves if key[0] == rank]:
            del self._shelves[key]
        self._held.pop(rank, None)
        self.totals["cleared"] += 1

    def count(self, rank: int, tier: Tier, block: int) -> int:
        """Announced copies of a block in a tier."""
        shelf = self._shelves.get((rank, tier))
        return shelf.counts.get(block, 0) if shelf else 0

    def resident(self, rank: int, tier: Tier, block: int) -> bool:
        """Whether some copy of the block was announced in the tier and not removed."""
        return self.count(rank, tier, block) > 0

    def tier_blocks(self, tier: Tier, rank: int | None = None) -> int:
        """Distinct blocks that the events claim for a tier, on one rank or summed over all."""
        return sum(len(shelf.counts) for shelf in self._of(tier, rank))

    def tier_copies(self, tier: Tier, rank: int | None = None) -> int:
        """Copies that the events claim for a tier: one a page slot (two namespaces count twice)."""
        return sum(shelf.copies for shelf in self._of(tier, rank))

    def _of(self, tier: Tier, rank: int | None) -> list[_Shelf]:
        return [
            shelf
            for (owner, held_in), shelf in self._shelves.items()
            if held_in is tier and rank in (None, owner)
        ]

    def clear(self) -> None:
        """Forget every claim (the worker was restarted); the totals stay."""
        self._shelves.clear()
        self._held.clear()


def _take_one(counts: dict[int, int], block: int) -> None:
    left = counts[block] - 1
    if left:
        counts[block] = left
    else:
        del counts[block]

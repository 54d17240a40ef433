"""The ledger: what the events of a worker claim, per rank and tier, as counts per block hash."""

from __future__ import annotations

from collections import Counter

import msgspec

from tierfuzz.events import AllBlocksCleared, Batch, BlockRemoved, BlockStored, Tier


class Anomaly(msgspec.Struct, frozen=True):
    """An event that does not fit what came before it. `slug` is stable; `hash` the block concerned."""

    slug: str
    hash: int
    tier: Tier
    rank: int
    seq: int
    detail: str


class Ledger:
    """Counts of one worker. Sets would lose blocks that two namespaces hold under one hash (B6c)."""

    def __init__(self) -> None:
        self._counts: dict[tuple[int, Tier], dict[int, int]] = {}
        self._held: dict[int, dict[int, int]] = {}  # per rank: copies of a block in any tier
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
        counts = self._counts.setdefault((rank, tier), {})
        held = self._held.setdefault(rank, {})
        if event.parent is not None:
            self._check_parent(event, batch, counts, held, anomalies)
        for block in event.hashes:
            before = counts.get(block, 0)
            if before:
                detail = f"stored again while {before} copies are held"
                anomalies.append(Anomaly("duplicate-store", block, tier, rank, batch.seq, detail))
            counts[block] = before + 1
            held[block] = held.get(block, 0) + 1
        self.totals[f"stored-{tier}"] += len(event.hashes)

    def _check_parent(
        self,
        event: BlockStored,
        batch: Batch,
        counts: dict[int, int],
        held: dict[int, int],
        anomalies: list[Anomaly],
    ) -> None:
        assert event.parent is not None
        if event.parent == event.hashes[0]:
            slug, detail = "self-parent", "a block names itself as its parent"
        elif event.parent not in held:
            slug, detail = "orphan-parent", f"parent {event.parent} is held in no tier"
        elif event.parent not in counts:
            slug, detail = "parent-not-in-tier", f"parent {event.parent} is held, but not in this tier"
        else:
            return
        anomalies.append(Anomaly(slug, event.hashes[0], event.tier, batch.rank, batch.seq, detail))

    def _remove(self, event: BlockRemoved, batch: Batch, anomalies: list[Anomaly]) -> None:
        tier, rank = event.tier, batch.rank
        counts = self._counts.setdefault((rank, tier), {})
        held = self._held.setdefault(rank, {})
        for block in event.hashes:
            if not counts.get(block, 0):
                detail = "removed although no copy was announced in this tier"
                anomalies.append(Anomaly("unmatched-removal", block, tier, rank, batch.seq, detail))
                continue
            _take_one(counts, block)
            _take_one(held, block)
        self.totals[f"removed-{tier}"] += len(event.hashes)

    def _clear_rank(self, rank: int) -> None:
        for (owner, _), counts in self._counts.items():
            if owner == rank:
                counts.clear()
        self._held.pop(rank, None)
        self.totals["cleared"] += 1

    def count(self, rank: int, tier: Tier, block: int) -> int:
        """Announced copies of a block in a tier."""
        return self._counts.get((rank, tier), {}).get(block, 0)

    def resident(self, rank: int, tier: Tier, block: int) -> bool:
        """Whether some copy of the block was announced in the tier and not removed."""
        return block in self._counts.get((rank, tier), ())

    def tier_blocks(self, tier: Tier, rank: int | None = None) -> int:
        """Distinct blocks that the events claim for a tier, on one rank or on all."""
        return sum(
            len(counts)
            for (owner, held_in), counts in self._counts.items()
            if held_in is tier and rank in (None, owner)
        )

    def tier_copies(self, tier: Tier, rank: int | None = None) -> int:
        """Copies that the events claim for a tier: one a page slot (two namespaces count twice)."""
        return sum(
            sum(counts.values())
            for (owner, held_in), counts in self._counts.items()
            if held_in is tier and rank in (None, owner)
        )

    def clear(self) -> None:
        """Forget every claim (the worker was restarted)."""
        self._counts.clear()
        self._held.clear()


def _take_one(counts: dict[int, int], block: int) -> None:
    left = counts[block] - 1
    if left:
        counts[block] = left
    else:
        del counts[block]

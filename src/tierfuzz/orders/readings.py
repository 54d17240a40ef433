"""The two readings of repeated stores: as copies that add up, or as membership of a set.

An engine that gives two namespaces one hash means copies (B6c); one that announces again what it has means a
set. Which is right cannot be told from the stream alone, so both are followed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

from tierfuzz.events import AllBlocksCleared, Batch, BlockRemoved, BlockStored, Tier
from tierfuzz.ledger import Ledger
from tierfuzz.orders.stream import Source

ASKED = (Tier.DEVICE, Tier.HOST)


class Reading(Protocol):
    """What the events of one worker say is where."""

    def book(self, batch: Batch) -> None:
        """Take note of one message."""

    def resident(self, rank: int, tier: Tier, block: int) -> bool:
        """Whether the block is in the tier."""

    def clear(self) -> None:
        """The worker is empty."""


class Counts:
    """Stores add a copy, removals take one: the ledger."""

    def __init__(self) -> None:
        self._ledger = Ledger()
        self.resident = self._ledger.resident
        self.clear = self._ledger.clear

    def book(self, batch: Batch) -> None:
        """Take note of one message."""
        self._ledger.apply(batch)


class Sets:
    """A store makes a block present, one removal makes it absent."""

    def __init__(self) -> None:
        self._held: defaultdict[tuple[int, Tier], set[int]] = defaultdict(set)

    def book(self, batch: Batch) -> None:
        """Take note of one message."""
        for event in batch.events:
            if isinstance(event, BlockStored):
                self._held[batch.rank, event.tier].update(event.hashes)
            elif isinstance(event, BlockRemoved):
                self._held[batch.rank, event.tier].difference_update(event.hashes)
            elif isinstance(event, AllBlocksCleared):
                for key in [key for key in self._held if key[0] == batch.rank]:
                    del self._held[key]

    def resident(self, rank: int, tier: Tier, block: int) -> bool:
        """Whether the block is in the tier."""
        return block in self._held.get((rank, tier), ())

    def clear(self) -> None:
        """The worker is empty."""
        self._held.clear()


READINGS: dict[str, type[Counts] | type[Sets]] = {"counts": Counts, "sets": Sets}


class Expected:
    """Right answers of one reading, over all workers."""

    def __init__(self, reading: str) -> None:
        self.reading = reading
        self._workers: dict[int, Reading] = {}

    def book(self, worker: int, batch: Batch) -> None:
        """Take note of one message."""
        self._of(worker).book(batch)

    def restart(self, worker: int) -> None:
        """The worker is empty."""
        self._of(worker).clear()

    def _of(self, worker: int) -> Reading:
        return self._workers.setdefault(worker, READINGS[self.reading]())

    def overlap(self, source: Source, blocks: Sequence[int]) -> dict[Tier, int]:
        """Leading blocks that are in each tier."""
        worker, rank = source
        of = self._of(worker)
        return {tier: _leading(of, rank, (tier,), blocks) for tier in ASKED}

    def held(self, source: Source, blocks: Sequence[int]) -> int:
        """Leading blocks that are in some tier."""
        worker, rank = source
        return _leading(self._of(worker), rank, ASKED, blocks)


def _leading(of: Reading, rank: int, tiers: Sequence[Tier], blocks: Sequence[int]) -> int:
    for index, block in enumerate(blocks):
        if not any(of.resident(rank, tier, block) for tier in tiers):
            return index
    return len(blocks)

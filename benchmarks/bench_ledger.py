"""Blocks a second of the ledger on one core: one block an event, and coalesced events."""

from __future__ import annotations

import random

from tierfuzz.clock import SYSTEM_CLOCK
from tierfuzz.events import Batch, BlockRemoved, BlockStored, KvEvent
from tierfuzz.ledger import Ledger

BLOCKS = 400_000


def chain(rng: random.Random, length: int) -> tuple[int, ...]:
    """Random block hashes."""
    return tuple(rng.getrandbits(63) for _ in range(length))


def stream(blocks_an_event: int) -> list[Batch]:
    """Chains of 32 blocks, stored and removed again, as batches of one chain."""
    rng = random.Random(1)
    batches: list[Batch] = []
    for number in range(BLOCKS // 64):
        blocks = chain(rng, 32)
        events: list[KvEvent] = []
        for at in range(0, 32, blocks_an_event):
            part = blocks[at : at + blocks_an_event]
            events.append(BlockStored(part, blocks[at - 1] if at else None, (), 16, "GPU"))
        events.append(BlockRemoved(blocks, "GPU"))
        batches.append(Batch(number, 0.0, 0, tuple(events)))
    return batches


def rate(blocks_an_event: int) -> float:
    """Blocks a second, stores and removals."""
    batches, ledger = stream(blocks_an_event), Ledger()
    started = SYSTEM_CLOCK.monotonic()
    for batch in batches:
        ledger.apply(batch)
    return BLOCKS / (SYSTEM_CLOCK.monotonic() - started)


def main() -> None:
    """Print both rates and their ratio."""
    single, coalesced = rate(1), rate(32)
    print(f"single-block events: {single / 1e3:.0f} thousand blocks/s (goal 250)")
    print(f"coalesced events: {coalesced / 1e3:.0f} thousand blocks/s (goal 1000)")
    print(f"ratio coalesced / single: {coalesced / single:.2f}")


if __name__ == "__main__":
    main()

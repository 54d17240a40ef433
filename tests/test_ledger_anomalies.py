"""The ledger: each anomaly where one was planted, silence where none was, and counts instead of sets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tierfuzz.events import AllBlocksCleared, Batch, BlockRemoved, BlockStored, KvEvent, Tier
from tierfuzz.hashing import page_hashes
from tierfuzz.ledger import ANOMALY_SLUGS, Anomaly, Ledger
from tierfuzz.model.replay import replay
from tierfuzz.model.rules import DEFAULT
from tierfuzz.prompts import tokens_of
from tierfuzz.recording import Recording, read_recording

RECORDINGS = Path(__file__).parent / "recordings"


def store(*hashes: int, after: int | None = None, medium: str = "GPU") -> BlockStored:
    """Blocks of one token."""
    return BlockStored(hashes, after, (7,) * len(hashes), 1, medium)


def remove(*hashes: int, medium: str = "GPU") -> BlockRemoved:
    """Blocks that leave a tier."""
    return BlockRemoved(hashes, medium)


def book(ledger: Ledger, *events: KvEvent, rank: int = 0, seq: int = 0) -> list[Anomaly]:
    """Book one batch."""
    return ledger.apply(Batch(seq, 0.0, rank, events))


CLEAN: tuple[KvEvent, ...] = (
    store(1, 2),
    store(3, after=2),
    store(1, 2, 3, medium="CPU_PINNED"),
    remove(3),
    store(3, after=2),
    remove(1, 2, 3),
    store(1, 2, 3, medium="DISK"),
    remove(3, medium="CPU_PINNED"),
    store(4, after=2, medium="CPU_TIER1"),
    AllBlocksCleared(),
    store(1),
)

# Planted into a worker that holds 1 and 2 on device and 1 on host; slug, block and tier of the anomaly.
PLANTED: tuple[tuple[KvEvent, str, int, Tier], ...] = (
    (store(1), "duplicate-store", 1, Tier.DEVICE),
    (store(9, 9), "duplicate-store", 9, Tier.DEVICE),
    (store(1, medium="CPU_TIER2"), "duplicate-store", 1, Tier.HOST),
    (remove(3), "unmatched-removal", 3, Tier.DEVICE),
    (remove(2, 2), "unmatched-removal", 2, Tier.DEVICE),
    (remove(2, medium="CPU"), "unmatched-removal", 2, Tier.HOST),
    (remove(1, medium="DISK"), "unmatched-removal", 1, Tier.STORAGE),
    (store(4, after=3), "orphan-parent", 4, Tier.DEVICE),
    (store(3, after=2, medium="CPU_PINNED"), "parent-not-in-tier", 3, Tier.HOST),
    (store(3, after=1, medium="DISK"), "parent-not-in-tier", 3, Tier.STORAGE),
    (store(5, after=5), "self-parent", 5, Tier.DEVICE),
    (store(5, 6, after=6), "self-parent", 5, Tier.DEVICE),
)


@pytest.mark.parametrize("split", [False, True])
def test_a_clean_stream_is_silent(split: bool) -> None:
    ledger = Ledger()
    batches = [(event,) for event in CLEAN] if split else [CLEAN]
    assert [found for batch in batches for found in book(ledger, *batch)] == []
    assert ledger.tier_copies(Tier.DEVICE) == 1


@pytest.mark.parametrize(("planted", "slug", "block", "tier"), PLANTED)
def test_a_planted_event_is_the_one_anomaly(planted: KvEvent, slug: str, block: int, tier: Tier) -> None:
    ledger = Ledger()
    assert book(ledger, store(1, 2), store(1, medium="CPU_PINNED"), rank=2) == []
    (found,) = book(ledger, planted, rank=2, seq=8)
    assert (found.slug, found.hash, found.tier, found.rank, found.seq) == (slug, block, tier, 2, 8)
    assert found.detail


def test_every_slug_has_a_planted_event() -> None:
    assert {slug for _, slug, _, _ in PLANTED} == set(ANOMALY_SLUGS)


def test_a_block_that_two_namespaces_hold_stays_until_both_copies_are_gone() -> None:
    ledger = Ledger()
    book(ledger, store(1), store(1))
    assert (ledger.count(0, Tier.DEVICE, 1), ledger.tier_blocks(Tier.DEVICE)) == (2, 1)
    assert ledger.tier_copies(Tier.DEVICE) == 2
    assert book(ledger, remove(1)) == []
    assert ledger.resident(0, Tier.DEVICE, 1)
    assert book(ledger, store(2, after=1), remove(1)) == []
    assert not ledger.resident(0, Tier.DEVICE, 1)
    assert [found.slug for found in book(ledger, remove(1))] == ["unmatched-removal"]
    assert ledger.tier_copies(Tier.DEVICE) == 1


def test_ranks_are_kept_apart() -> None:
    ledger = Ledger()
    book(ledger, store(1, 2), rank=0)
    assert book(ledger, store(1), rank=1) == []
    assert [found.slug for found in book(ledger, store(3, after=2), rank=1)] == ["orphan-parent"]
    assert [found.slug for found in book(ledger, remove(2), rank=1)] == ["unmatched-removal"]
    assert [ledger.tier_blocks(Tier.DEVICE, rank) for rank in (0, 1, 2, None)] == [2, 2, 0, 4]
    book(ledger, AllBlocksCleared(), rank=1)
    assert [ledger.tier_copies(Tier.DEVICE, rank) for rank in (0, 1, None)] == [2, 0, 2]


def test_a_clear_empties_every_tier_and_restarts_parents() -> None:
    ledger = Ledger()
    book(ledger, store(1), store(1, medium="CPU_PINNED"), store(1, medium="DISK"), AllBlocksCleared())
    assert [ledger.tier_blocks(tier) for tier in Tier] == [0] * len(Tier)
    assert [found.slug for found in book(ledger, store(2, after=1), remove(1))] == [
        "orphan-parent",
        "unmatched-removal",
    ]


def test_a_restarted_worker_holds_nothing_and_keeps_its_totals() -> None:
    ledger = Ledger()
    book(ledger, store(1, 2), remove(2), AllBlocksCleared(), store(1, medium="CPU"))
    ledger.clear()
    assert [ledger.tier_copies(tier) for tier in Tier] == [0] * len(Tier)
    assert ledger.totals == Counter({"stored-device": 2, "removed-device": 1, "cleared": 1, "stored-host": 1})
    assert book(ledger, store(1)) == []


STEPS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 4), st.sampled_from(["GPU", "CPU"]), st.integers(0, 1))
)


@settings(deadline=None)
@given(STEPS)
def test_counts_are_stores_less_matched_removals(steps: list[tuple[bool, int, str, int]]) -> None:
    ledger, counts, slugs = Ledger(), Counter[tuple[int, str, int]](), []
    for stores, block, medium, rank in steps:
        key, event = (
            (rank, medium, block),
            store(block, medium=medium) if stores else remove(block, medium=medium),
        )
        odd = bool(counts[key]) if stores else not counts[key]
        slugs = [found.slug for found in book(ledger, event, rank=rank)]
        assert slugs == ([("duplicate-store" if stores else "unmatched-removal")] if odd else [])
        counts[key] += 1 if stores else -1 if counts[key] else 0
    for (rank, medium, block), count in counts.items():
        assert ledger.count(rank, event_tier(medium), block) == count
    assert ledger.tier_copies(Tier.DEVICE) + ledger.tier_copies(Tier.HOST) == counts.total()


def event_tier(medium: str) -> Tier:
    """The tier of the two media used here."""
    return Tier.DEVICE if medium == "GPU" else Tier.HOST


def test_a_recording_has_the_anomalies_of_its_known_defects_and_no_others() -> None:
    recording = read_recording(RECORDINGS / "sglang-0.5.17-write_through-p16.jsonl.xz")
    ledger, found = Ledger(), list[Anomaly]()
    for batch in recording.batches:
        found += ledger.apply(Batch(batch.seq, batch.ts, batch.rank, tuple(batch.typed())))
    # B6c: three namespaces send the same four pages, which are stored in both tiers. B7: a node that
    # was computed again over its host copy is on device without a store, until it leaves or has a child.
    assert Counter((anomaly.slug, anomaly.tier) for anomaly in found) == {
        ("duplicate-store", Tier.DEVICE): 4,
        ("duplicate-store", Tier.HOST): 8,
        ("unmatched-removal", Tier.DEVICE): 2,
        ("parent-not-in-tier", Tier.DEVICE): 1,
    }
    shared = pages_of_several_namespaces(recording)
    assert all((anomaly.hash in shared) == (anomaly.slug == "duplicate-store") for anomaly in found)


def pages_of_several_namespaces(recording: Recording) -> set[int]:
    """Hashes of pages that at least two namespaces sent."""
    page, owners = recording.header.page_size, dict[int, set[str | None]]()
    for op in recording.ops:
        for block in page_hashes(tokens_of(op.prompt) + (op.output_ids or ()), page):
            owners.setdefault(block, set()).add(op.extra_key)
    return {block for block, found in owners.items() if len(found) > 1}


@pytest.mark.parametrize("policy", ["write_through-p16", "write_back-p16"])
def test_the_same_operations_on_a_healthy_engine_are_silent(policy: str) -> None:
    ledger, slugs = Ledger(), Counter[str]()
    for result in replay(read_recording(RECORDINGS / f"sglang-0.5.17-{policy}.jsonl.xz"), DEFAULT):
        for events in result.batches:
            slugs.update(anomaly.slug for anomaly in book(ledger, *events))
    # under write_back a leaf goes to host while its parent stays on device
    assert set(slugs) <= ({"parent-not-in-tier"} if policy.startswith("write_back") else set())
    assert ledger.totals["stored-host"] > 1000

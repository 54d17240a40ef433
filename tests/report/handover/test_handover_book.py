"""The book of events inside repro.py: what does not fit is named, a healthy stream is not accused."""

from __future__ import annotations

from typing import Any

import pytest

from tierfuzz.codec import Wire, encode_batch
from tierfuzz.events import AllBlocksCleared, Batch, BlockRemoved, BlockStored, KvEvent
from tierfuzz.hashing import page_hashes as hashes_of_the_package
from tierfuzz.report.handover.script.book import Book, page_hashes, signed
from tierfuzz.report.handover.steps import BY_EVENTS

SETUP = {
    "policy": "write_through",
    "page": 4,
    "device_pages": 4,
    "host_pages": 8,
    "removal_first": False,
    "backup_hits": 1,
    "backup_newest": False,
    "empty": True,
}
GPU, CPU = "GPU", "CPU_PINNED"


def book(**other: Any) -> Book:
    """A book that knows the blocks 1 to 4 as the pages of "a"."""
    made = Book({**SETUP, **other})
    made.name("a", "", [1, 2, 3, 4])
    return made


def store(block: int, medium: str | None, parent: int | None = None, size: int = 4) -> BlockStored:
    """A page."""
    return BlockStored((block,), parent, (0,) * size, 4, medium)


def gone(*blocks: int, medium: str | None = GPU) -> BlockRemoved:
    """A removal."""
    return BlockRemoved(blocks, medium)


def apply(made: Book, *events: KvEvent, wire: Wire = "array") -> list[str]:
    """One batch; its lines."""
    return made.apply(3, encode_batch(Batch(3, 0.0, 0, events), wire))


def oracles(made: Book) -> list[str]:
    """What it says is odd."""
    return [oracle for oracle, _ in made.odd]


@pytest.mark.parametrize("wire", ["array", "map"])
def test_a_healthy_life_of_a_page_is_not_odd(wire: Wire) -> None:
    made = book()
    lines = apply(made, store(1, GPU), store(2, GPU, 1), store(1, CPU), store(2, CPU, 1), wire=wire)
    assert lines == ["#3 stored  device a#0..1", "#3 stored  host   a#0..1"]
    assert (made.held(1), made.on("device", 1), made.on("host", 3)) == (True, True, False)
    apply(made, gone(1, 2), store(1, GPU), gone(1), gone(1, 2, medium=CPU), AllBlocksCleared(), wire=wire)
    made.at_rest(0, flushed=True)
    assert made.odd == []
    assert not made.held(1)


@pytest.mark.parametrize(
    ("events", "oracle"),
    [
        ((store(2, GPU, 1),), "orphan-parent"),
        ((store(2, GPU, 2),), "orphan-parent"),
        ((store(1, GPU), store(1, GPU)), "duplicate-store"),
        ((gone(1),), "unmatched-removal"),
        ((store(1, GPU), gone(1, medium=CPU)), "unmatched-removal"),
        ((store(1, None),), "missing-medium"),
        ((store(1, "NVME"),), "unknown-medium"),
        ((store(1, GPU, size=3),), "malformed-event"),
        ((store(1, GPU), gone(1), store(1, CPU)), "event-order"),
    ],
)
def test_what_does_not_fit_is_named(events: tuple[KvEvent, ...], oracle: str) -> None:
    made = book()
    apply(made, *events)
    assert oracles(made) == [oracle]
    assert made.odd[0][1].startswith("batch 3: ")
    assert oracle in BY_EVENTS


def test_a_payload_that_cannot_be_read_is_odd_and_hides_nothing_before_it() -> None:
    made = book()
    assert "cannot be read" in made.apply(4, b"\xc1")[0]
    assert oracles(made) == ["malformed-event"]
    apply(made, store(1, GPU))
    assert made.on("device", 1)


def test_write_back_announces_the_removal_first() -> None:
    made = book(policy="write_back", removal_first=True)
    apply(made, store(1, GPU), gone(1), store(1, CPU))
    assert made.odd == []
    apply(made, store(2, GPU), store(2, CPU))
    assert oracles(made) == ["event-order"]


@pytest.mark.parametrize("doubt", ["shared", "revived", "storage"])
def test_the_order_is_not_judged_where_it_says_nothing(doubt: str) -> None:
    made = book(removal_first=None if doubt == "storage" else False)
    if doubt == "shared":
        made.name("b", "tenant", [1])
    elif doubt == "revived":
        made.revived.add(1)
    apply(made, store(1, CPU))
    assert made.odd == []


def test_more_blocks_than_a_pool_has_are_odd_at_rest() -> None:
    made = book()
    for block in range(1, 6):
        made.name("b", "", [block])
        apply(made, store(block, GPU), store(block, CPU))
    made.at_rest(0, flushed=False)
    assert made.odd == [("over-capacity", "events claim 5 device blocks; the pool has 4 pages")]


def test_a_flush_leaves_no_claim() -> None:
    made = book()
    apply(made, store(1, GPU), store(1, CPU))
    made.at_rest(0, flushed=True)
    assert oracles(made) == ["clear-scope", "clear-scope"]


def test_a_block_of_nobody_needs_an_explanation() -> None:
    made = book(backup_hits=0)
    apply(made, store(9, GPU))
    made.at_rest(1, flushed=False)
    assert made.odd == []
    apply(made, store(10, GPU), store(11, GPU))
    made.at_rest(1, flushed=False)
    assert oracles(made) == ["unexplained-store"]


@pytest.mark.parametrize(("hits", "missed"), [(0, False), (1, False), (2, True)])
def test_a_page_without_host_copy_is_odd_after_enough_hits(hits: int, missed: bool) -> None:
    made = book(policy="write_through_selective", backup_hits=2)
    apply(made, store(1, GPU))
    for _ in range(hits):
        made.completed([1])
    made.at_rest(0, flushed=False)
    assert oracles(made) == ["no-backup"] * missed


def test_write_back_may_lose_pages_only_where_the_host_is_full() -> None:
    for pages, missed in ((8, True), (3, False)):
        made = book(policy="write_back", removal_first=True, host_pages=pages)
        apply(made, store(1, GPU), gone(1))
        made.at_rest(0, flushed=False)
        assert oracles(made) == ["no-backup"] * missed


def test_a_small_host_must_have_the_pages_of_the_newest_request_only() -> None:
    made = book(backup_newest=True, host_pages=2)
    apply(made, store(1, GPU), store(2, GPU, 1))
    made.completed([1, 2])
    made.at_rest(0, flushed=False)
    assert made.odd == []
    made.newest = [1, 2]
    apply(made, store(2, CPU))
    made.at_rest(0, flushed=False)
    assert made.odd == [("no-backup", "a#0 has no host copy at rest")]


def test_loads_are_device_stores_of_what_is_on_host() -> None:
    made = book()
    apply(made, store(1, GPU), store(1, CPU), gone(1), store(1, GPU), store(2, GPU, 1))
    assert made.loads == {1: 1}


def test_hashes_are_those_of_the_engine() -> None:
    assert page_hashes([1, 2, 3, 4, 5, 6, 7, 8, 9], 4, "") == [-3488128144981237669, 5674439469042975057]
    seed = b"\x07" * 32
    assert page_hashes(list(range(9)), 4, seed.hex()) == list(hashes_of_the_package(range(9), 4, seed))
    assert page_hashes([1, 2, 3], 4, "") == []
    assert [signed(2**64 - 5), signed((2**64 - 5).to_bytes(8, "big") + b"rest"), signed(7)] == [-5, -5, 7]


def test_blocks_from_before_are_not_accused_on_workers_that_were_not_emptied() -> None:
    foreign = (store(8, GPU, 7), store(8, GPU, 7), gone(9), gone(8), store(8, CPU))
    emptied, shared = book(backup_hits=0), book(backup_hits=0, empty=False)
    for made in (emptied, shared):
        apply(made, *foreign)
        made.at_rest(0, flushed=False)
    assert set(oracles(emptied)) >= {"orphan-parent", "duplicate-store", "unmatched-removal"}
    assert shared.odd == []
    apply(shared, store(1, GPU), store(1, GPU))
    assert oracles(shared) == ["duplicate-store"]


def test_long_lists_of_blocks_are_cut() -> None:
    made = book()
    text = made.text([1, 2, 4, *range(100, 110)])
    assert text.startswith("a#0..1 a#3 100 101 ")
    assert text.endswith("and 4 more")

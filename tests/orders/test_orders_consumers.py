"""Our own consumers under orders: the reference stays silent, its tier-blind control is found everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from short import short

from tierfuzz.cli.suspect import Suspect
from tierfuzz.consumers.registry import make_consumer
from tierfuzz.orderfuzz import fuzz_orders
from tierfuzz.orders.causality import FAMILIES
from tierfuzz.orders.check import check
from tierfuzz.orders.files import load_stream
from tierfuzz.orders.legality import explain, families
from tierfuzz.orders.reduce import reduce
from tierfuzz.orders.stream import Stream
from tierfuzz.program import WRITE_POLICIES, WritePolicy

WORDS = [f"{kind}{tier}{page}" for kind in "SR" for tier in "gh" for page in ("1", "2")] + ["C", "X"]


@pytest.mark.parametrize("policy", WRITE_POLICIES)
def test_the_reference_is_silent_on_legal_orders(policy: WritePolicy) -> None:
    run = fuzz_orders(lambda: make_consumer("reference"), policy, max_examples=40, seed_=11)
    assert run.wrong == {}
    assert run.comparisons > 3000
    assert run.follows == {"counts"}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_reference_is_silent_on_illegal_orders(family: str) -> None:
    run = fuzz_orders(lambda: make_consumer("reference"), "write_back", family, max_examples=30, seed_=11)
    assert run.wrong == {}
    assert run.comparisons > 1000


@pytest.mark.parametrize(
    "name", ["sglang-0.5.17-wb-p16-overlap", "sglang-0.5.23-sel-p16-h528-rust", "sglang-0.5.23-wt-p4-rust"]
)
def test_the_reference_is_silent_on_recordings(recordings: Path, name: str) -> None:
    trial = check(load_stream(recordings / f"{name}.jsonl.xz"), lambda: make_consumer("reference"))
    assert trial.findings == []
    assert trial.comparisons > 5000
    assert trial.follows == {"counts"}


@pytest.mark.parametrize("policy", WRITE_POLICIES)
def test_the_tier_blind_tree_is_found_and_made_small_in_every_order(policy: WritePolicy) -> None:
    run = fuzz_orders(lambda: make_consumer("tier-blind"), policy, max_examples=40, seed_=2)
    lengths = {}
    for (kind, profile), (stream, finding) in run.first.items():
        reduced = reduce(stream, finding, lambda: make_consumer("tier-blind"))
        assert reduced.minimal
        assert explain(reduced.stream) is None
        if kind == "forgets":
            lengths[profile] = reduced.stream.events
    removal_first = policy == "write_back"
    assert lengths == {"sglang-0.5.17": 5 if removal_first else 3, "sglang-0.5.23": 3}


def test_no_shorter_order_shows_it_where_the_removal_comes_first() -> None:
    """Five events are the least under write_back of 0.5.17: all legal orders of four are tried."""
    tried = 0
    for stream in legal_orders(4):
        tried += 1
        assert check(stream, lambda: make_consumer("tier-blind")).findings == []
    assert tried == 157
    assert check(short("Sg1 Rg1 Sh1 Sg1 Rg1"), lambda: make_consumer("tier-blind")).findings


def legal_orders(longest: int, words: tuple[str, ...] = ()) -> Iterator[Stream]:
    """Every legal order of up to so many events about two pages, under write_back of 0.5.17."""
    for word in WORDS:
        stream = short(" ".join([*words, word]))
        if explain(stream) is None:
            yield stream
            if len(words) + 1 < longest:
                yield from legal_orders(longest, (*words, word))


PLANTED = [
    ("tier-blind-removal", "write_through", "", "forgets", 3),  # T37
    ("tier-spelled-twice", "write_through", "", "phantom", 2),  # T39
    ("name-goes-with-device-copy", "write_through", "", "phantom", 4),  # T40
    ("name-goes-with-device-copy", "write_back", "", "phantom", 6),
    ("clear-ignored", "write_back", "", "phantom", 2),  # T41
    ("sequence-reset-ignored", "write_through", "", "phantom", 2),  # T33
    ("tier-weight-counts-pages", "write_through", "", "wrong-tier", 2),  # T47
    ("orphans-dropped", "write_back", "child-first", "forgets", 4),  # T34
]


@pytest.mark.parametrize(("plant", "policy", "family", "kind", "least"), PLANTED)
def test_planted_faults_are_found_and_made_small(
    plant: str, policy: WritePolicy, family: str, kind: str, least: int
) -> None:
    suspect = Suspect("reference", (plant,))
    run = fuzz_orders(suspect, policy, family, max_examples=60, seed_=5)
    found = [reduce(*first, suspect) for (other, _), first in run.first.items() if other == kind]
    assert found
    for reduced in found:
        assert reduced.minimal
        assert reduced.stream.events <= least
        assert families(reduced.stream) == ({family} if family else set())


def test_dropped_orphans_are_not_seen_in_legal_orders() -> None:
    suspect = Suspect("reference", ("orphans-dropped",))
    assert fuzz_orders(suspect, "write_back", max_examples=60, seed_=5).wrong == {}


def test_a_recording_shows_the_tier_blind_tree_in_three_events(recordings: Path) -> None:
    stream = load_stream(recordings / "sglang-0.5.23-sel-p16-h528-rust.jsonl.xz")
    (finding,) = check(stream, lambda: make_consumer("tier-blind")).findings
    reduced = reduce(stream, finding, lambda: make_consumer("tier-blind"))
    assert reduced.stream.events == 3
    assert explain(reduced.stream) is None
    assert reduced.minimal

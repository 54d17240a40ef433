"""Order fuzzing finds wrong consumers and shrinks them; a right one stays unaccused on many streams."""

from __future__ import annotations

import pytest
from standins import StandIn

from tierfuzz.orderfuzz import OrderRun, fuzz_orders
from tierfuzz.orders.legality import explain
from tierfuzz.orders.reduce import Reduced, reduce
from tierfuzz.program import WRITE_POLICIES, WritePolicy


def fuzzed(fault: str, policy: WritePolicy, family: str = "", examples: int = 40) -> OrderRun:
    """Streams against a stand-in."""
    return fuzz_orders(lambda: StandIn(fault), policy, family, examples, seed_=3)


def least(run: OrderRun, fault: str, kind: str) -> Reduced:
    """The minimal stream of a kind of wrong answer, of the engine whose order takes most events."""
    found = [
        reduce(stream, finding, lambda: StandIn(fault))
        for (other, _), (stream, finding) in run.first.items()
        if other == kind
    ]
    return max(found, key=lambda reduced: reduced.stream.events)


@pytest.mark.parametrize("policy", WRITE_POLICIES[:2])
def test_a_right_consumer_is_not_accused(policy: WritePolicy) -> None:
    run = fuzzed("", policy, examples=40)
    assert 20 < run.streams <= 40
    assert run.comparisons > 1000
    assert (run.wrong, run.first) == ({}, {})
    assert run.follows == {"sets"}  # two namespaces with one hash tell the readings apart


@pytest.mark.parametrize(
    ("policy", "events"), [("write_through", 3), ("write_through_selective", 3), ("write_back", 5)]
)
def test_a_consumer_without_tiers_is_found_and_made_small(policy: WritePolicy, events: int) -> None:
    reduced = least(fuzzed("tier-blind", policy), "tier-blind", "forgets")
    assert reduced.stream.events <= events
    assert reduced.minimal
    assert explain(reduced.stream) is None


def test_a_family_of_illegal_orders_shows_what_legal_ones_cannot() -> None:
    assert fuzzed("orphan-dropped", "write_back").wrong == {}
    run = fuzzed("orphan-dropped", "write_back", "child-first")
    assert run.family == "child-first"
    reduced = least(run, "orphan-dropped", "forgets")
    assert reduced.stream.events <= 4
    illegal = explain(reduced.stream)
    assert illegal is not None
    assert illegal.family == "child-first"


def test_the_same_seed_gives_the_same_streams() -> None:
    one, two = (fuzzed("tier-blind", "write_through", examples=20) for _ in range(2))
    assert (one.events, one.comparisons, one.wrong) == (two.events, two.comparisons, two.wrong)
    assert one.first == two.first

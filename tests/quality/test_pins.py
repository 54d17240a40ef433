"""Known bugs of every component are found within a budget of operations, and become small programs."""

from __future__ import annotations

import functools

import pytest

from tierfuzz.bench import BenchConfig, look_for
from tierfuzz.bench_results import BenchRow, median
from tierfuzz.catalogue.all_cases import case
from tierfuzz.catalogue.case import COMPONENTS
from tierfuzz.shrink.budget import Limits

SEED = 0
MOST_OPERATIONS = 400  # until found
LONGEST = 8  # operations of a result
MEDIAN_RUNS, MEDIAN_OPERATIONS = 40, 400  # to shrink programs of LONG operations and more
LONG = 20
# Seconds are no part of a pin: a slow machine gets more of them, and no more runs or operations.
CONFIG = BenchConfig(budget_s=120.0, limits=Limits(runs=80, operations=800))
PINNED = (
    *("T01", "T04", "T16"),  # engine tree
    *("T21", "T23", "T30"),  # event publisher
    *("T33", "T35"),  # subscriber
    *("T37", "T41"),  # router tree
    *("T44", "T45"),  # accounting
    *("T51", "T55"),  # lifecycle
)


@functools.cache
def row(id_: str) -> BenchRow:
    """The search for a case, made once."""
    return look_for(case(id_), SEED, CONFIG)


def test_every_component_is_pinned() -> None:
    assert {case(id_).component for id_ in PINNED} == set(COMPONENTS)
    assert len(PINNED) >= 12


@pytest.mark.parametrize("id_", PINNED)
def test_a_known_bug_is_found_and_becomes_small(id_: str) -> None:
    found = row(id_)
    assert found.named, found
    assert found.operations <= MOST_OPERATIONS, found
    assert 1 <= found.length <= LONGEST, found
    assert found.minimal, found


def test_the_median_of_runs_to_shrink_a_long_program() -> None:
    long = [one for one in map(row, PINNED) if one.was >= LONG]
    assert len(long) >= len(PINNED) // 2
    assert median(one.shrink_runs for one in long) <= MEDIAN_RUNS, long
    assert median(one.shrink_operations for one in long) <= MEDIAN_OPERATIONS, long

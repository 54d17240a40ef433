"""ddmin: 1-minimal, ordered, never the same twice, within its budget."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierfuzz.clock import FakeClock
from tierfuzz.shrink.budget import Limits, Meter, OutOfBudget
from tierfuzz.shrink.ddmin import ddmin
from tierfuzz.shrink.memo import Remembered

Items = tuple[int, ...]
Predicate = Callable[[Items], bool]
# Several reasons to fail, each a set of numbers that must all be there: not monotone in their minimal sets.
REASONS = st.lists(st.frozensets(st.integers(0, 12), min_size=1, max_size=4), min_size=1, max_size=3)
LISTS = st.lists(st.integers(0, 12), max_size=30)


def failing(reasons: list[frozenset[int]]) -> Predicate:
    """Fails when all numbers of one of the reasons are there."""
    return lambda items: any(reason <= set(items) for reason in reasons)


def odd_sum(items: Items) -> bool:
    """Not monotone at all: a part of what fails may pass, and a part of that fail again."""
    return sum(items) % 2 == 1


def without(items: Items, index: int) -> Items:
    return items[:index] + items[index + 1 :]


def is_part_of(part: Items, whole: Items) -> bool:
    left = iter(whole)
    return all(item in left for item in part)


@given(LISTS, REASONS)
def test_the_result_fails_and_every_item_of_it_is_needed(
    items: list[int], reasons: list[frozenset[int]]
) -> None:
    fails = failing(reasons)
    whole = (*items, *sorted(reasons[0]))
    result = ddmin(whole, fails)
    assert fails(result)
    assert is_part_of(result, whole)
    assert not any(fails(without(result, i)) for i in range(len(result)))


@given(LISTS)
def test_it_is_one_minimal_where_failing_is_not_monotone(items: list[int]) -> None:
    whole = (*items, 1 - sum(items) % 2)
    result = ddmin(whole, odd_sum)
    assert odd_sum(result)
    assert not any(odd_sum(without(result, i)) for i in range(len(result)))


@given(LISTS, REASONS)
def test_nothing_runs_twice(items: list[int], reasons: list[frozenset[int]]) -> None:
    fails, runs = failing(reasons), list[Items]()

    def counted(candidate: Items) -> bool:
        runs.append(candidate)
        return fails(candidate)

    whole = (*items, *sorted(reasons[0]))
    remembered = Remembered[Items](counted, Meter(Limits(), FakeClock()), key=lambda c: c, cost=len)
    ddmin(whole, remembered)
    ddmin(whole, remembered)  # what was tried once stays known
    assert len(runs) == len(set(runs)) == remembered.meter.runs
    assert sum(map(len, runs)) == remembered.meter.operations


@given(LISTS, REASONS, st.integers(0, 12), st.integers(0, 60))
def test_no_budget_is_exceeded_and_the_best_is_kept(
    items: list[int], reasons: list[frozenset[int]], runs: int, operations: int
) -> None:
    whole = (*items, *sorted(reasons[0]))
    limits = Limits(runs=runs, operations=operations)
    remembered = Remembered[Items](failing(reasons), Meter(limits, FakeClock()), key=lambda c: c, cost=len)
    try:
        result = ddmin(whole, remembered)
    except OutOfBudget:
        assert remembered.best is None or failing(reasons)(remembered.best)
    else:
        assert result == (remembered.best or whole)
    assert remembered.meter.runs <= runs
    assert remembered.meter.operations <= operations


def test_few_needed_among_many_cost_few_runs() -> None:
    needed = {3, 17, 29}
    remembered = Remembered[Items](
        lambda c: needed <= set(c), Meter(Limits(), FakeClock()), key=lambda c: c, cost=len
    )
    assert ddmin(range(32), remembered) == (3, 17, 29)
    assert remembered.meter.runs <= 32


def test_nothing_is_needed() -> None:
    assert ddmin("abc", lambda _: True) == ()


def test_nothing_to_remove() -> None:
    assert ddmin((), odd_sum) == ()


def test_time_is_a_limit_too() -> None:
    clock = FakeClock()
    meter = Meter(Limits(seconds=10.0), clock, spent_before=4.0)
    meter.spend(1)
    clock.advance(6.5)
    with pytest.raises(OutOfBudget, match="10 seconds"):
        meter.spend(1)
    assert meter.seconds == 10.5
    assert meter.runs == 1

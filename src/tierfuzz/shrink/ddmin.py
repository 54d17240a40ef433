"""Delta debugging over any sequence: remove chunks, halve them, until no single item can go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def ddmin(items: Sequence[T], fails: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """A part of `items`, in order, that still fails and of which every single item is needed.

    `items` itself is taken to fail and is not run. Only complements are tried (chunks of a half, a quarter,
    ... one item are removed, the oldest first): what a fuzzer made needs few of its items, from several
    places, so a part on its own seldom fails (design, Shrinking; after Zeller and Hildebrandt 2002). Nothing
    is asked twice about the same choice of items. What `fails` raises (a budget) passes through.
    """
    return _remove(items, fails, len(items) // 2)


def one_by_one(items: Sequence[T], fails: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """ddmin that only removes single items: fewest runs where nearly all are needed."""
    return _remove(items, fails, 1)


def _remove(items: Sequence[T], fails: Callable[[tuple[T, ...]], bool], size: int) -> tuple[T, ...]:
    kept = list(range(len(items)))
    asked: set[tuple[int, ...]] = set()
    size = max(1, size)
    while kept:
        start, shrunk = 0, False
        while start < len(kept):
            rest = kept[:start] + kept[start + size :]
            if tuple(rest) not in asked and fails(tuple(items[i] for i in rest)):
                kept, shrunk = rest, True
            else:
                start += size
            asked.add(tuple(rest))
        if size == 1 and not shrunk:
            break
        size = max(1, min(size, len(kept)) // 2)
    return tuple(items[i] for i in kept)


def together(items: Sequence[T], works: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """As many `items` as work together: all at once where that works, else by halves; () when none does.

    For changes that mostly work: one run for all of them, about 2 log n to find the one that does not.
    """
    chosen: list[T] = []

    def add(group: Sequence[T]) -> None:
        if not group:
            return
        if works((*chosen, *group)):
            chosen.extend(group)
        elif len(group) > 1:
            add(group[: len(group) // 2])
            add(group[len(group) // 2 :])

    add(items)
    return tuple(chosen)


def least(low: int, high: int, works: Callable[[int], bool]) -> int:
    """The least number that works, low..high; `high` is taken to work and is not run.

    The two ends come first (mostly all of it can go, or none), then halves.
    """
    if low >= high or works(low):
        return min(low, high)
    if high - low > 1 and works(high - 1):
        high -= 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if works(middle) else (middle, high)
    return high

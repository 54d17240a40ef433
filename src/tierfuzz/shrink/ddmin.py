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
    kept = list(range(len(items)))
    asked: set[tuple[int, ...]] = set()
    size = max(1, len(kept) // 2)
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

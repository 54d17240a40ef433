"""What has been tried already: a predicate that runs nothing twice and counts what it runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from tierfuzz.shrink.budget import Meter

T = TypeVar("T")


class Remembered(Generic[T]):
    """`fails` with a memory and a budget: give it to ddmin as its predicate.

    `key` says when two candidates are the same; `cost` how many operations a candidate is. `best` is the
    last candidate that failed, which is what is left when OutOfBudget ends a search.
    """

    def __init__(
        self,
        fails: Callable[[T], bool],
        meter: Meter,
        key: Callable[[T], Hashable],
        cost: Callable[[T], int],
    ) -> None:
        self._fails = fails
        self._key = key
        self._cost = cost
        self.meter = meter
        self.known: dict[Hashable, bool] = {}
        self.best: T | None = None

    def __call__(self, candidate: T) -> bool:
        """Whether it fails: from memory, or by a run within the budget."""
        key = self._key(candidate)
        if key not in self.known:
            self.meter.spend(self._cost(candidate))
            self.known[key] = self._fails(candidate)
        if self.known[key]:
            self.best = candidate
        return self.known[key]

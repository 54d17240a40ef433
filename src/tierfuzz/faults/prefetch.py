"""Faults of prefetches from storage that do not end as they began."""

from __future__ import annotations

from collections.abc import Callable

from tierfuzz.model.engine import Engine
from tierfuzz.model.faults import Fault
from tierfuzz.model.node import Node
from tierfuzz.model.request import Active
from tierfuzz.model.sequence import PageRun


class AbortKeepsPrefetch(Fault):
    """A request that is aborted while its prefetch runs never gives the host slots of it back."""

    oracle = "leak-at-rest"
    source = "T53, sgl-project/sglang#9874"

    def forget_prefetch(self, engine: Engine, inner: Callable[[Active], None], active: Active) -> None:
        """Forget the prefetch; what it gives back is charged again."""
        slots = active.prefetch.slots if active.prefetch is not None else []
        inner(active)
        engine.cache.host.take(len(slots))


class PrefetchFreedTwice(Fault):
    """Host slots that a prefetch did not need are given back twice, and later handed out twice."""

    oracle = "leak-at-rest"
    source = "T54, sgl-project/sglang#13483"

    def refill(
        self,
        engine: Engine,
        inner: Callable[[Node, PageRun, list[int]], int],
        anchor: Node,
        run: PageRun,
        slots: list[int],
    ) -> int:
        """Give the unneeded slots back once more; the pool of this engine does not look."""
        found = inner(anchor, run, slots)
        engine.cache.host.checked = False
        engine.cache.host.give(slots[:found])
        return found

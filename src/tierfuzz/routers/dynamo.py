"""What all ways into Dynamo have in common: sources as workers of their own, and answers from a dump.

Every rank of a worker is registered as a Dynamo worker with that rank alone, so that each has a replay
endpoint. What Dynamo books under another rank than the registered one is nobody's.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from tierfuzz.consumers.base import Overlap, Source
from tierfuzz.errors import UsageError
from tierfuzz.events import Tier
from tierfuzz.routers.base import Channel, LiveConsumer
from tierfuzz.routers.dynamo_dump import Residency
from tierfuzz.routers.dynamo_loop import dynamo_core

NOBODY = "http://127.0.0.1:9"  # of workers that are never sent a request
_numbers = itertools.count(1)


def page_keys(tokens: Sequence[int], page_size: int, namespace: str = "") -> list[int]:
    """The whole pages of a prompt as Dynamo names them by their content."""
    keys = dynamo_core().compute_block_hash_for_seq(
        list(tokens), page_size, cache_namespace=namespace or None
    )
    return [int(key) for key in keys]


class Dynamo(LiveConsumer):
    """Device figures are what Dynamo answers, host figures are those of its dump: Dynamo's own answer counts
    host pages only where they go on after the device ones."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.model = f"tierfuzz-{next(_numbers)}"
        self.page_size = 0
        self.sources: dict[int, Source] = {}  # by Dynamo's number of a worker
        self._residency: Residency | None = None

    # what a subclass says ---------------------------------------------------------------------------
    @abstractmethod
    def add(self, number: int, rank: int, channel: Channel) -> None:
        """Register one Dynamo worker."""

    @abstractmethod
    def remove(self, number: int) -> None:
        """Remove one Dynamo worker."""

    @abstractmethod
    def dump(self) -> Sequence[Mapping[str, Any]]:
        """Events that would build the tree of this model."""

    @abstractmethod
    def device_pages(self, tokens: Sequence[int], namespace: str) -> dict[tuple[int, int], int]:
        """Leading device pages by Dynamo's worker and rank."""

    @abstractmethod
    def best(self, tokens: Sequence[int], namespace: str) -> int:
        """Dynamo's choice: its number of a worker."""

    # the live protocol ------------------------------------------------------------------------------
    def attach(self, worker: int, page_size: int, channels: Mapping[int, Channel]) -> None:
        """A Dynamo worker for every rank; the first one decides the size of a page for its model."""
        if self.page_size not in (0, page_size):
            raise UsageError(
                f"{self.name}: pages of {page_size} beside {self.page_size} tokens; expected one"
            )
        self.page_size = page_size
        for rank, channel in channels.items():
            number = next(_numbers)
            self.sources[number] = (worker, rank)
            self.add(number, rank, channel)

    def detach(self, worker: int, rank: int | None) -> None:
        """Remove what stands for the worker, or the rank."""
        gone = [n for n, (w, r) in self.sources.items() if w == worker and rank in (None, r)]
        for number in gone:
            self.remove(number)
            del self.sources[number]
        self.refresh()

    def reset(self) -> None:
        """A model of another name has a tree of its own."""
        self.close()
        self.model, self.page_size = f"tierfuzz-{next(_numbers)}", 0

    def refresh(self) -> None:
        """The dump is read anew when it is needed next."""
        self._residency = None

    def ask(self, tokens: Sequence[int], namespace: str) -> Overlap:
        """See the class."""
        found: Overlap = {source: {} for source in self.sources.values()}
        if not tokens or len(tokens) < self.page_size:
            return found
        if self._residency is None:
            self._residency = Residency(self.dump())
        for place, tiers in self._residency.leading(page_keys(tokens, self.page_size, namespace)).items():
            if (source := self._source(place)) is not None:
                found[source] = dict(tiers)
        device = self.device_pages(tokens, namespace)
        for number, source in self.sources.items():
            found[source][Tier.DEVICE] = device.get((number, source[1]), 0)
        return found

    def choose(self, tokens: Sequence[int], loads: Mapping[int, float], namespace: str) -> int:
        """Dynamo does not know our loads: it sees all workers as idle."""
        chosen = self.sources.get(self.best(tokens, namespace))
        return chosen[0] if chosen is not None else min(loads)

    def _source(self, place: tuple[int, int]) -> Source | None:
        source = self.sources.get(place[0])
        return source if source is not None and source[1] == place[1] else None

"""What a trial of event orders needs of a consumer, whoever made it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from tierfuzz.events import Tier
from tierfuzz.orders.stream import Source

Seen = Mapping[Source, Mapping[Tier, int]]


class Tried(Protocol):
    """What is asked of a consumer here; every adapter of tierfuzz.consumers has it."""

    def register(self, worker: int, page_size: int, ranks: int = 1) -> None:
        """Expect messages of this worker."""

    def deliver(self, worker: int, rank: int, seq: int, payload: bytes) -> None:
        """Take one message as it came off the wire."""

    def wanted(self) -> list[tuple[int, int, int]]:
        """(worker, rank, first sequence number) of replays that it asks for."""

    def overlap(self, tokens: Sequence[int], namespace: str = "") -> Seen:
        """Leading pages in each tier, by worker and rank."""


@runtime_checkable
class Live(Protocol):
    """What a consumer has besides that listens at sockets (tierfuzz.routers)."""

    def deaf(self) -> list[Source]:
        """Sources whose newest messages it has not heard, although there was time."""

    def close(self) -> None:
        """Give the sockets back."""


Make = Callable[[], Tried]

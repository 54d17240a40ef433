"""Dynamo in processes of its own: the standalone indexer, and KvEventPublisher with KvRouter.

Both listen on every interface, so they live in a private network namespace; see tierfuzz.routers.private.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from tierfuzz.routers.base import Channel
from tierfuzz.routers.dynamo import Dynamo
from tierfuzz.routers.dynamo_loop import QUIET
from tierfuzz.routers.private import PrivateProcess, SocketFolder
from tierfuzz.routers.publisher import LivePublisher

WORN_OUT = 500  # sources of one process; memory of those that are gone is not given back
_numbers = itertools.count(1)
_houses: dict[str, PrivateProcess] = {}
_taken: dict[str, int] = {}


def house(kind: str) -> PrivateProcess:
    """The running process of this kind, for one more source."""
    if kind not in _houses:
        _houses[kind] = PrivateProcess("tierfuzz.routers.dynamo_house", kind, environment=QUIET)
        _taken[kind] = 0
    _taken[kind] += 1
    return _houses[kind]


def close_worn(kind: str) -> None:
    """End a process that had many sources; the next one starts afresh."""
    if _taken.get(kind, 0) >= WORN_OUT:
        _houses.pop(kind).close()
        _taken[kind] = 0


@cache
def _sockets() -> SocketFolder:
    return SocketFolder()


class Housed(Dynamo):
    """`kind` of the process. It has sources of one stream at a time."""

    kind: str

    def publisher(self) -> LivePublisher:
        """Sockets that are files, since the process is in another network."""
        return LivePublisher(self.clock, at=_sockets().path / str(next(_numbers)))

    def add(self, number: int, rank: int, channel: Channel) -> None:
        """Register one source."""
        publisher = channel.publisher
        house(self.kind).ask(
            "add",
            number=number,
            model=self.model,
            rank=rank,
            size=channel.page_size,
            events=publisher.endpoint,
            replay=publisher.replay_endpoint,
        )

    def remove(self, number: int) -> None:
        """Remove one source."""
        self._ask("remove", number=number)

    def dump(self) -> Sequence[Mapping[str, Any]]:
        """Events of this stream's sources."""
        events: Sequence[Mapping[str, Any]] = self._ask("dump")
        return events

    def device_pages(self, tokens: Sequence[int], namespace: str) -> dict[tuple[int, int], int]:
        """As it counts them."""
        rows = self._ask("device", tokens=list(tokens), namespace=namespace)
        return {(number, rank): pages for number, rank, pages in rows}

    def best(self, tokens: Sequence[int], namespace: str) -> int:
        """As it chooses."""
        return int(self._ask("best", tokens=list(tokens), namespace=namespace))

    def _ask(self, command: str, **fields: Any) -> Any:
        return _houses[self.kind].ask(command, model=self.model, **fields)

    def close(self) -> None:
        """Remove all sources; a process that had many of them goes too."""
        super().close()
        close_worn(self.kind)


class DynamoIndexer(Housed):
    """`python -m dynamo.indexer`, asked over HTTP."""

    name, kind = "dynamo-indexer", "indexer"


class DynamoRouter(Housed):
    """KvEventPublisher, event plane, KvRouter: replays are never asked for."""

    name, kind = "dynamo-router", "router"
    primed = True  # the event plane lies behind the subscriber

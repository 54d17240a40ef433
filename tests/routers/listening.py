"""A live consumer without anything of others: real subscribers in front of our own reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import zmq

from tierfuzz.consumers.base import Overlap, Source
from tierfuzz.consumers.reference import Reference
from tierfuzz.routers.base import Channel, LiveConsumer


class Listening(LiveConsumer):
    """Hears what comes over sockets. `deaf_from`: the number of the first message that it does not take."""

    name = "listening"

    def __init__(self, deaf_from: int = 1 << 30, patience_s: float = 3.0) -> None:
        super().__init__(patience_s=patience_s)
        self.inner = Reference()
        self.deaf_from = deaf_from
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.subscribers: dict[Source, zmq.Socket[bytes]] = {}

    def attach(self, worker: int, page_size: int, channels: Mapping[int, Channel]) -> None:
        self.inner.register(worker, page_size, len(channels))
        self.inner.wanted()  # it begins here; nothing was published before
        for rank, channel in channels.items():
            socket = self.subscribers[worker, rank] = self.context.socket(zmq.SUB)
            socket.subscribe(b"")
            socket.connect(channel.publisher.endpoint)

    def detach(self, worker: int, rank: int | None) -> None:
        self.inner.deregister(worker, rank)

    def refresh(self) -> None:
        for source, socket in self.subscribers.items():
            while socket.poll(0):
                _, number, payload = socket.recv_multipart()
                if int.from_bytes(number, "big") < self.deaf_from:
                    self.inner.deliver(*source, int.from_bytes(number, "big"), payload)
                    for wish in self.inner.wanted():
                        self._replay(*wish)

    def _replay(self, worker: int, rank: int, first: int) -> None:
        """From the publisher's memory: its replay socket has tests of its own."""
        for seq, payload in self.channels[worker, rank].publisher.memory:
            if seq >= first:
                self.inner.deliver(worker, rank, seq, payload)

    def ask(self, tokens: Sequence[int], namespace: str) -> Overlap:
        return self.inner.overlap(tokens, namespace)

    def choose(self, tokens: Sequence[int], loads: Mapping[int, float], namespace: str) -> int:
        return self.inner.route(tokens, loads, namespace)

    def close(self) -> None:
        super().close()
        self.context.destroy(linger=0)

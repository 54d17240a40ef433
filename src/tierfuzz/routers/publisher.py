"""The event sockets of one worker and rank, as a subscriber of others sees them: live events and replay."""

from __future__ import annotations

from pathlib import Path

import zmq

from tierfuzz.clock import SYSTEM_CLOCK, Clock
from tierfuzz.errors import EnvironmentFailure
from tierfuzz.worker.replay import END_OF_REPLAY

LOOPBACK = "127.0.0.1"
JOINED = b"\x01"  # first byte of what a subscription brings
JOIN_BOUND_S = 10.0
POLL_S = 0.001


class LivePublisher:
    """PUB and ROUTER on loopback, driven by serve() only: there is no thread, nothing happens in between.

    The live socket is an XPUB: on the wire a PUB, but it says when somebody has subscribed, so that nothing
    is published before. `memory`: number and payload of what can be replayed. `silent`: requests for a replay
    are accepted and never answered. `at`: beginning of a path for sockets that are files; else they are TCP.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK, topic: bytes = b"", at: Path | None = None) -> None:
        self.memory: list[tuple[int, bytes]] = []
        self.silent = False
        self.subscribers = 0
        self.replays = 0  # requests for one
        self._clock, self._topic, self._at = clock, topic, at
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._live, self.endpoint = self._bound(zmq.XPUB)
        self._live.set(zmq.XPUB_VERBOSER, 1)  # every subscription, and every end of one
        self._replay, self.replay_endpoint = self._bound(zmq.ROUTER)

    def _bound(self, kind: int) -> tuple[zmq.Socket[bytes], str]:
        socket = self._context.socket(kind)
        socket.set_hwm(0)
        socket.set(zmq.LINGER, 0)
        if self._at is None:
            return socket, f"tcp://{LOOPBACK}:{socket.bind_to_random_port(f'tcp://{LOOPBACK}')}"
        endpoint = f"ipc://{self._at}-{'replay' if kind == zmq.ROUTER else 'live'}"
        socket.bind(endpoint)
        return socket, endpoint

    def wait_joined(self, who: str, bound_s: float = JOIN_BOUND_S) -> None:
        """Wait until somebody has subscribed; EnvironmentFailure says `who` did not."""
        deadline = self._clock.monotonic() + bound_s
        while not self.subscribers:
            if self._clock.monotonic() >= deadline:
                raise EnvironmentFailure(f"{who} did not subscribe to {self.endpoint} within {bound_s:g} s")
            self._clock.sleep(POLL_S)
            self.serve()

    def send(self, seq: int, payload: bytes) -> None:
        """One message, live, and remembered for replay."""
        self.memory.append((seq, payload))
        self._live.send_multipart((self._topic, seq.to_bytes(8, "big"), payload))

    def forget(self) -> None:
        """Another process: nothing can be replayed."""
        self.memory.clear()

    def serve(self) -> None:
        """Take note of subscriptions, and answer what was asked for."""
        while self._live.poll(0):
            self.subscribers += 1 if self._live.recv()[:1] == JOINED else -1
        while self._replay.poll(0):
            frames = self._replay.recv_multipart()
            self.replays += 1
            if not self.silent:
                self._answer(frames[0], int.from_bytes(frames[-1], "big"))

    def _answer(self, client: bytes, first: int) -> None:
        """As the engine does: an empty frame, the number, the payload; the end mark at last."""
        for seq, payload in self.memory:
            if seq >= first:
                self._replay.send_multipart((client, b"", seq.to_bytes(8, "big"), payload))
        self._replay.send_multipart((client, b"", END_OF_REPLAY, b""))

    def close(self) -> None:
        """Close both sockets."""
        self._context.destroy(linger=0)

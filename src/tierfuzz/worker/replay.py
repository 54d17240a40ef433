"""The replay socket: asks a worker for the batches that it still remembers (reference 3.5)."""

from __future__ import annotations

import zmq

from tierfuzz.clock import Clock

END_OF_REPLAY = b"\xff" * 8


class ReplayClient:
    """A DEALER towards the worker's ROUTER; reads replies with and without a topic frame."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], endpoint: str, clock: Clock) -> None:
        self._context = context
        self._endpoint = endpoint
        self._clock = clock
        self._socket = self._connect()

    def _connect(self) -> zmq.Socket[bytes]:
        socket = self._context.socket(zmq.DEALER)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVHWM, 0)
        socket.setsockopt(zmq.RECONNECT_IVL, 10)
        socket.connect(self._endpoint)
        return socket

    def fetch(self, first: int, timeout_s: float) -> tuple[list[tuple[int, bytes]], bool]:
        """Batches with seq >= first as (seq, payload), and whether the end marker came in time."""
        self._socket.send_multipart([b"", first.to_bytes(8, "big")])
        deadline = self._clock.monotonic() + timeout_s
        found: list[tuple[int, bytes]] = []
        while (left := deadline - self._clock.monotonic()) > 0:
            if not self._socket.poll(int(left * 1000) + 1):
                continue
            frames = self._socket.recv_multipart()
            if len(frames) < 3 or len(frames[-2]) != 8:
                continue
            if frames[-2] == END_OF_REPLAY:
                return found, True
            found.append((int.from_bytes(frames[-2], "big"), frames[-1]))
        self.close()
        self._socket = self._connect()  # late replies must not mix with the next answer
        return found, False

    def close(self) -> None:
        """Close the socket."""
        self._socket.close(0)

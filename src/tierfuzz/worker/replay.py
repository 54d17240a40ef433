"""The replay socket: asks a worker for the batches that it still remembers (reference 3.5, 8)."""

from __future__ import annotations

from typing import NamedTuple

import zmq

from tierfuzz.clock import Clock

END_OF_REPLAY = b"\xff" * 8
FIRST_SILENCE_S = 0.5
MOST_BYTES = 1 << 28


class Replay(NamedTuple):
    """Batches as (seq, payload); `complete`: the end mark came; `malformed`: frame sizes of odd messages."""

    batches: list[tuple[int, bytes]]
    complete: bool
    malformed: list[str]


class ReplayClient:
    """A DEALER towards the worker's ROUTER; reads replies with and without a topic frame."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], endpoint: str, clock: Clock) -> None:
        self._context = context
        self._endpoint = endpoint
        self._clock = clock
        self._socket = self._connect()

    def _connect(self) -> zmq.Socket[bytes]:
        socket = self._context.socket(zmq.DEALER)
        socket.set(zmq.LINGER, 0)
        socket.set_hwm(0)
        socket.set(zmq.MAXMSGSIZE, MOST_BYTES)
        socket.set(zmq.RECONNECT_IVL, 10)
        socket.connect(self._endpoint)
        return socket

    def reconnect(self) -> None:
        """A new socket: no late reply to an old question can be taken for an answer to the next."""
        self._socket.close(0)
        self._socket = self._connect()

    def fetch(self, first: int, timeout_s: float) -> Replay:
        """Batches with seq >= first, up to the end mark; incomplete when `timeout_s` seconds bring nothing.

        A long replay may take longer: a busy engine sends a batch in 5 ms (seen: 380 batches in over 2 s).
        A question that meets a worker just as it goes away is lost, so after a silence it is asked again.
        """
        deadline = self._clock.monotonic() + timeout_s
        silence = FIRST_SILENCE_S
        while True:
            until = min(deadline, self._clock.monotonic() + silence)
            replay = self._ask(first, until, timeout_s)
            if replay.complete:
                return replay
            self.reconnect()
            if replay.batches or replay.malformed or self._clock.monotonic() >= deadline:
                return replay
            silence *= 2

    def _ask(self, first: int, silent_until: float, patience_s: float) -> Replay:
        replay = Replay([], False, [])
        try:
            self._socket.send_multipart([b"", first.to_bytes(8, "big")], zmq.NOBLOCK)
        except zmq.Again:
            return replay
        until = silent_until
        while self._poll(until):
            frames = self._socket.recv_multipart()
            until = self._clock.monotonic() + patience_s
            body = _body_of(frames)
            if body is None:
                replay.malformed.append(f"{[len(frame) for frame in frames]}")
            elif body[0] == END_OF_REPLAY:
                return replay._replace(complete=True)
            else:
                replay.batches.append((int.from_bytes(body[0], "big"), body[1]))
        return replay

    def _poll(self, until: float) -> bool:
        left = until - self._clock.monotonic()
        return left > 0 and bool(self._socket.poll(int(left * 1000) + 1))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close(0)


def _body_of(frames: list[bytes]) -> tuple[bytes, bytes] | None:
    """(seq, payload) of a reply: [empty, seq, payload], or with the topic after the empty frame."""
    if len(frames) not in (3, 4) or frames[0] or len(frames[-2]) != 8:
        return None
    return frames[-2], frames[-1]

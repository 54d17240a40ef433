"""The event sockets of a worker: PUB with a sequence number, ROUTER with a replay buffer (3.1-3.5)."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Sequence

import zmq

from tierfuzz.clock import Clock
from tierfuzz.codec import Wire, encode_batch
from tierfuzz.errors import EnvironmentFailure, UsageError
from tierfuzz.events import Batch, KvEvent
from tierfuzz.model.engine import START_EVENTS
from tierfuzz.sim.config import LOOPBACK_HOSTS, EventSocketConfig

END_OF_REPLAY = b"\xff" * 8
_ANY_HOST = ("*", "0.0.0.0", "[::]", "::")


class Publisher:
    """Sends every batch live, keeps the last `buffer_steps` for replay. Delays in seconds.

    `send`, `answer` and `advertise` are the seams for faults. Endpoints are the ones really bound.
    """

    def __init__(
        self,
        config: EventSocketConfig,
        wire: Wire,
        clock: Clock,
        rng: random.Random,
        delay_s: float = 0.0,
        rank: int = 0,
    ) -> None:
        self.rank = rank
        self._config = config
        self._wire = wire
        self._clock = clock
        self._rng = rng
        self._delay = delay_s
        self._sequence = 0
        self._waiting: deque[tuple[float, float, tuple[KvEvent, ...]]] = deque()
        self._buffer: deque[tuple[int, bytes]] = deque(maxlen=config.buffer_steps)
        self._topic = config.topic.encode()
        self._context = zmq.Context()
        self._live = self._context.socket(zmq.PUB)
        self._live.set_hwm(config.hwm)
        self._replay: zmq.Socket[bytes] | None = None
        self.replay_endpoint: str | None = None
        try:
            self.endpoint = self._open_live()
            self._open_replay()
        except BaseException:
            self._context.destroy(linger=0)
            raise

    def start(self) -> None:
        """Publish the constructor's clear as batch 0, and answer replays; needs a running event loop."""
        self._leave(self._clock.wall(), START_EVENTS)
        if self._replay is not None:
            asyncio.get_running_loop().add_reader(self._replay.fileno(), self._serve_replays)

    # sockets ---------------------------------------------------------------------------------------
    def _open_live(self) -> str:
        endpoint = _of_rank(self._config.endpoint, self.rank)
        wildcard = any(mark in endpoint for mark in ("*", "::", "0.0.0.0"))
        bind = wildcard or endpoint.startswith(("ipc://", "inproc://"))
        if self._config.bind is not None:
            bind = self._config.bind
        if bind:
            return _bind(self._live, endpoint)
        self._live.connect(_local(endpoint))
        return endpoint

    def _open_replay(self) -> None:
        if self._config.replay_endpoint is None:
            return
        self._replay = self._context.socket(zmq.ROUTER)
        self._replay.set_hwm(0)  # a replay may be the whole buffer, and a ROUTER drops beyond its mark
        self.replay_endpoint = _bind(self._replay, _of_rank(self._config.replay_endpoint, self.rank))

    # live ------------------------------------------------------------------------------------------
    def publish(self, events: Sequence[KvEvent]) -> None:
        """Let one batch go, at once or after its delay, never past another one."""
        now = self._clock.wall()
        if self._delay <= 0:
            self._leave(now, events)
            return
        due = self._clock.monotonic() + self._rng.uniform(0, self._delay)
        due = max(due, self._waiting[-1][0]) if self._waiting else due
        self._waiting.append((due, now, tuple(events)))
        if len(self._waiting) == 1:
            self._wait()

    def _wait(self) -> None:
        delay = self._waiting[0][0] - self._clock.monotonic()
        asyncio.get_running_loop().call_later(max(0.0, delay), self._leave_due)

    def _leave_due(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._clock.monotonic():
            _, stamp, events = self._waiting.popleft()
            self._leave(stamp, events)
        if self._waiting:
            self._wait()

    def _leave(self, stamp: float, events: Sequence[KvEvent]) -> None:
        batch = Batch(self._sequence, stamp, self.rank, tuple(events))
        self._sequence += 1
        self.send(batch.seq, encode_batch(batch, self._wire))

    def send(self, seq: int, payload: bytes) -> None:
        """One batch onto the live socket and into the replay buffer."""
        self._buffer.append((seq, payload))
        self._live.send_multipart((self._topic, seq.to_bytes(8, "big"), payload))

    # replay ----------------------------------------------------------------------------------------
    def _serve_replays(self) -> None:
        """The socket's descriptor is edge-triggered: answer until nothing is left to read."""
        assert self._replay is not None
        while self._replay.poll(0):
            frames = self._replay.recv_multipart()
            if len(frames) == 3:  # anything else is dropped without an answer, as the engine does
                self.answer(frames[0], self._replayed(int.from_bytes(frames[2], "big")))

    def _replayed(self, start: int) -> list[tuple[bytes, ...]]:
        """What is remembered from `start` on, and the end mark."""
        topic, no_topic = ((b"",), (b"",)) if self._wire == "array" else ((b"", self._topic), (b"", b""))
        kept = [(*topic, seq.to_bytes(8, "big"), payload) for seq, payload in self._buffer if seq >= start]
        return [*kept, (*no_topic, END_OF_REPLAY, b"")]

    def answer(self, client: bytes, messages: Sequence[tuple[bytes, ...]]) -> None:
        """The messages of one replay, to whoever asked for it."""
        assert self._replay is not None
        for frames in messages:
            self._replay.send_multipart((client, *frames))

    def advertise(self, block_size: int) -> int:
        """The block size that the server info names: that of the events, in tokens."""
        return block_size

    def close(self) -> None:
        """Let what waits go, then close the sockets; a subscriber gets a moment to take the rest."""
        while self._waiting:
            _, stamp, events = self._waiting.popleft()
            self._leave(stamp, events)
        if self._replay is not None:
            asyncio.get_running_loop().remove_reader(self._replay.fileno())
        self._context.destroy(linger=200)


def _of_rank(endpoint: str, rank: int) -> str:
    """The endpoint of a rank: its number is added to a port, or to the name inside a process (3.1)."""
    if rank == 0 or endpoint.endswith(":0"):
        return endpoint
    if endpoint.startswith("inproc://"):
        return f"{endpoint}_dp{rank}"
    base, _, port = endpoint.rpartition(":")
    if not endpoint.startswith("tcp://") or not port.isdigit():
        raise UsageError(
            f"event endpoint {endpoint!r}: expected tcp://HOST:PORT where there are several ranks"
        )
    return f"{base}:{int(port) + rank}"


def _local(endpoint: str) -> str:
    """The endpoint with any-host replaced by 127.0.0.1; UsageError for a host that is not loopback."""
    if not endpoint.startswith("tcp://"):
        return endpoint
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    if host in _ANY_HOST:
        host = "127.0.0.1"
    if host not in LOOPBACK_HOSTS:
        raise UsageError(
            f"event endpoint {endpoint!r}: expected a loopback host or '*' (which binds 127.0.0.1)"
        )
    return f"tcp://{host}:{'*' if port == '0' else port}"


def _bind(socket: zmq.Socket[bytes], endpoint: str) -> str:
    try:
        socket.bind(_local(endpoint))
    except zmq.ZMQError as error:
        raise EnvironmentFailure(
            f"cannot bind event endpoint {endpoint}: {error}; choose a free one"
        ) from error
    return socket.getsockopt_string(zmq.LAST_ENDPOINT)

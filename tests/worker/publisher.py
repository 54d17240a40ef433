"""A worker's two event sockets as a test wants them: in order or not, with or without replay, or insane."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import zmq
from waiting import wait_for

from tierfuzz.codec import encode_batch
from tierfuzz.events import AllBlocksCleared, Batch

END = b"\xff" * 8


def payload(seq: int, process: int = 0) -> bytes:
    """A good batch; its time stamp tells which one it is."""
    return encode_batch(Batch(seq, process * 1000.0 + seq, 0, (AllBlocksCleared(),)))


class Publisher:
    """XPUB for the live stream (it tells who subscribed), a ROUTER that a thread serves for replays.

    `topic_frame`: replies of the newer engine. `silent`: answers wait, and go out stale before the next one.
    `endless`: no end mark.
    """

    def __init__(self, topic: str = "kv-events", topic_frame: bool = False) -> None:
        self.topic = topic.encode()
        self.topic_frame = topic_frame
        self.silent = False
        self.endless = False
        self.asked: list[int] = []
        self.odd_replies: list[list[bytes]] = []
        self.buffer: list[tuple[int, bytes]] = []
        self.next = 0
        self.process = 0
        self._late: list[list[bytes]] = []
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._live = self._open_live("tcp://127.0.0.1:*")
        self.endpoint = self._live.getsockopt_string(zmq.LAST_ENDPOINT)
        self._router = self._context.socket(zmq.ROUTER)
        self._router.set_hwm(0)
        self._router.bind("tcp://127.0.0.1:*")
        self.replay_endpoint = self._router.getsockopt_string(zmq.LAST_ENDPOINT)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _open_live(self, endpoint: str) -> zmq.Socket[bytes]:
        live = self._context.socket(zmq.XPUB)
        live.set_hwm(0)
        live.setsockopt(zmq.XPUB_VERBOSE, 1)
        wait_for("the address to be free", lambda: _binds(live, endpoint))  # closing takes a moment
        return live

    # live ------------------------------------------------------------------------------------------
    def joined(self) -> None:
        """Wait until somebody has subscribed."""
        wait_for("a subscription", self.has_joined)

    def has_joined(self) -> bool:
        """Somebody has subscribed just now."""
        return bool(self._live.poll(1)) and self._live.recv()[:1] == b"\x01"

    def publish(self, count: int = 1, live: bool = True, kept: bool = True) -> None:
        """The next batches: onto the live stream or not, into the replay buffer or not."""
        for _ in range(count):
            body = payload(self.next, self.process)
            if kept:
                self.buffer.append((self.next, body))
            if live:
                self.send(self.next, body)
            self.next += 1

    def send(self, seq: int, body: bytes) -> None:
        """One live message, whatever it says."""
        self.frames(self.topic, seq.to_bytes(8, "big"), body)

    def frames(self, *frames: bytes) -> None:
        """One live message of any frames."""
        self._live.send_multipart(frames)

    def restart(self) -> None:
        """Forget everything and listen anew at the same address, as another process does."""
        self._live.close(0)
        self._live = self._open_live(self.endpoint)
        self.buffer = []
        self.next = 0
        self.process += 1

    # replay ----------------------------------------------------------------------------------------
    def _serve(self) -> None:
        while not self._ending.is_set():
            if self._router.poll(5):
                self._answer(self._router.recv_multipart())

    def _answer(self, frames: list[bytes]) -> None:
        client, empty, start = frames
        assert empty == b""
        self.asked.append(int.from_bytes(start, "big"))
        self._late += self._replies(client, self.asked[-1])
        while self._late and not self.silent:
            self._router.send_multipart(self._late.pop(0))

    def _replies(self, client: bytes, first: int) -> list[list[bytes]]:
        topic = [self.topic] if self.topic_frame else []
        replies = [[client, *odd] for odd in self.odd_replies]
        for seq, body in self.buffer:
            if seq >= first:
                replies.append([client, b"", *topic, seq.to_bytes(8, "big"), body])
        if not self.endless:
            replies.append([client, b"", *([b""] if topic else []), END, b""])
        return replies

    def close(self) -> None:
        """End the thread and close the sockets."""
        self._ending.set()
        self._thread.join()
        self._context.destroy(linger=0)


def _binds(socket: zmq.Socket[bytes], endpoint: str) -> bool:
    try:
        socket.bind(endpoint)
    except zmq.ZMQError:
        return False
    return True


@contextmanager
def publishing(topic: str = "kv-events", topic_frame: bool = False) -> Iterator[Publisher]:
    """A running publisher."""
    publisher = Publisher(topic, topic_frame)
    try:
        yield publisher
    finally:
        publisher.close()

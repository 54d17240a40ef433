"""Event batches of one worker: live and replayed, in the order of their numbers."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import zmq

END = b"\xff" * 8
REPLAY_MS = 2000
WILDCARDS = ("*", "::", "0.0.0.0")


class Events:
    """Call pull() for what has come since; `gaps` and `odd` are what went wrong on the way.

    `bind`: the worker connects to the endpoint, so that this side has to bind it.
    """

    def __init__(self, live: str, replay: str, bind: bool) -> None:
        self._context = zmq.Context()
        self._live = self._context.socket(zmq.SUB)
        self._live.set_hwm(0)
        self._live.subscribe(b"")
        (self._live.bind if bind else self._live.connect)(live)
        self._replay = replay
        self._asking = self._ask_anew() if replay else None
        self._waiting: dict[int, bytes] = {}
        self.next: int | None = None
        self.gaps: list[str] = []
        self.odd: list[str] = []

    def _ask_anew(self) -> zmq.Socket[bytes]:
        socket = self._context.socket(zmq.DEALER)
        socket.set(zmq.LINGER, 0)
        socket.set_hwm(0)
        socket.connect(self._replay)
        return socket

    @property
    def replayed(self) -> bool:
        """The worker can be asked what it has published, so nothing is only on its way."""
        return self._asking is not None

    def close(self) -> None:
        self._context.destroy(linger=0)

    def pull(self) -> list[tuple[int, bytes]]:
        """(number, payload) of what has come; a number that neither socket has is a gap."""
        self._hear()
        complete = self._asking is None or self._recall()
        found = []
        for seq in sorted(self._waiting):
            if self.next is not None and seq > self.next:
                if not complete:
                    break  # the replay may still have it
                self.gaps.append(f"batch {self.next} never came; the next was {seq}")
            found.append((seq, self._waiting.pop(seq)))
            self.next = seq + 1
        return found

    def _take(self, frames: list[bytes]) -> None:
        seq = int.from_bytes(frames[-2], "big")
        if self.next is None or seq >= self.next:
            self._waiting.setdefault(seq, frames[-1])

    def _hear(self) -> None:
        while self._live.poll(0):
            frames = self._live.recv_multipart()
            if len(frames) == 3 and len(frames[1]) == 8:
                self._take(frames)
            else:
                self.odd.append(f"{len(frames)} frames; expected topic, 8 bytes, payload")

    def _recall(self) -> bool:
        """Ask the worker what it remembers; False when no end of its answer came."""
        assert self._asking is not None
        self._asking.send_multipart([b"", (self.next or 0).to_bytes(8, "big")])
        while self._asking.poll(REPLAY_MS):
            frames = self._asking.recv_multipart()
            if len(frames) >= 3 and frames[-2] == END:
                return True
            if len(frames) >= 3 and len(frames[-2]) == 8:
                self._take(frames)
        self._asking.close(0)
        self._asking = self._ask_anew()
        return False


def endpoints(info: dict[str, Any], url: str) -> tuple[str, str, bool]:
    """Event and replay endpoint from /server_info ("" for none), and whether this side has to bind."""
    host = urlsplit(url).hostname or "127.0.0.1"
    config = json.loads(info.get("kv_events_config") or "{}")
    told, own = info.get("kv_events") or {}, info.get("sim") or {}
    given = config.get("endpoint") or ("tcp://*:5557" if config else "")
    live = _reachable(given, told.get("endpoint_port_base"), host)
    replay = config.get("replay_endpoint") or own.get("replay_endpoint") or ""
    back = _reachable(
        replay, told.get("replay_endpoint_port_base") or _port(own.get("replay_endpoint")), host
    )
    return live, back, given.startswith("tcp://") and not any(card in given for card in WILDCARDS)


def _reachable(given: str, port: int | None, host: str) -> str:
    """`*` stands for the host of the worker; a port that the worker tells wins over the configured one."""
    if not given.startswith("tcp://"):
        return given
    name = given.removeprefix("tcp://").rpartition(":")[0]
    name = host if name in WILDCARDS or name == "[::]" else name
    return f"tcp://{name}:{port or _port(given)}"


def _port(endpoint: str | None) -> int | None:
    return int(endpoint.rpartition(":")[2]) if endpoint else None

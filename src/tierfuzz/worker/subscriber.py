"""Subscribes to a worker's events: in order, gaps filled from replay, garbage counted, never raised."""

from __future__ import annotations

from collections import Counter

import zmq

from tierfuzz.clock import Clock
from tierfuzz.codec import decode_batch
from tierfuzz.events import Batch, EventFault
from tierfuzz.worker.replay import ReplayClient

REPLAY_BOUND_S = 2.0


class EventSubscriber:
    """Poll-based: nothing happens but in drain() and sync(). `findings` are faults of the transport."""

    def __init__(self, endpoint: str, replay_endpoint: str | None, clock: Clock, topic: str = "") -> None:
        self._clock = clock
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._live = self._context.socket(zmq.SUB)
        self._live.setsockopt(zmq.RCVHWM, 0)
        self._live.setsockopt(zmq.LINGER, 0)
        self._live.setsockopt(zmq.RECONNECT_IVL, 10)
        self._live.subscribe(topic)
        self._live.connect(endpoint)
        self._replay = ReplayClient(self._context, replay_endpoint, clock) if replay_endpoint else None
        self._next = 0
        self._last_ts = 0.0
        self._early: dict[int, Batch] = {}
        self._ready: list[Batch] = []
        self.findings: list[EventFault] = []
        self.counts: Counter[str] = Counter()

    def close(self) -> None:
        """Close all sockets."""
        self._live.close(0)
        if self._replay is not None:
            self._replay.close()
        self._context.term()

    @property
    def last_seq(self) -> int:
        """Newest sequence number that is in hand with everything before it; -1 before the first."""
        return self._next - 1

    # reading ---------------------------------------------------------------------------------------
    def drain(self) -> list[Batch]:
        """Batches that have arrived, in order of their sequence; each is returned once."""
        self._receive()
        if self._early:
            self._close_gap()
        ready, self._ready = self._ready, []
        return ready

    def take_findings(self) -> list[EventFault]:
        """Findings since the last call."""
        findings, self.findings = self.findings, []
        return findings

    def _receive(self) -> None:
        while self._live.poll(0):
            frames = self._live.recv_multipart()
            self.counts["messages"] += 1
            if len(frames) != 3 or len(frames[1]) != 8:
                sizes = [len(frame) for frame in frames]
                self._find(
                    "malformed-frames", f"expected topic, 8 bytes, payload; got frames of {sizes} bytes"
                )
                continue
            self._accept(int.from_bytes(frames[1], "big"), frames[2], replayed=False)

    def _accept(self, seq: int, payload: bytes, replayed: bool) -> None:
        if seq < self._next and not self._restarted(seq, payload, replayed):
            self.counts["duplicates"] += 1
            return
        if seq in self._early:
            return
        self._early[seq] = decode_batch(seq, payload, self._clock.monotonic(), replayed)
        self._advance()

    def _restarted(self, seq: int, payload: bytes, replayed: bool) -> bool:
        """An old number with a newer time stamp: the worker counts from 0 again (T33)."""
        if replayed or decode_batch(seq, payload).ts <= self._last_ts:
            return False
        self._find("subscriber-restart", f"sequence went back from {self._next} to {seq}")
        self._next = 0
        self._early.clear()
        return True

    def _advance(self) -> None:
        while (batch := self._early.pop(self._next, None)) is not None:
            self._ready.append(batch)
            self._last_ts = max(self._last_ts, batch.ts)
            self._next += 1
            for fault in batch.faults:
                self.counts[fault.slug] += 1
                self.findings.append(fault)

    # gaps ------------------------------------------------------------------------------------------
    def _close_gap(self) -> None:
        """Something is missing before what arrived: ask for it, and say so when it is gone."""
        self.counts["gaps"] += 1
        if self._replay is not None:
            self._fetch(REPLAY_BOUND_S)
        while self._early:
            first = min(self._early)
            self._find("sequence-gap", f"batches {self._next} to {first - 1} never came and are in no replay")
            self._next = first
            self._advance()

    def sync(self, timeout_s: float = REPLAY_BOUND_S) -> int | None:
        """Fetch everything that the worker has published so far; the newest seq, None when it cannot say."""
        self._receive()
        if self._replay is None or not self._fetch(timeout_s):
            return None
        if self._early:
            self._close_gap()
        return self.last_seq

    def _fetch(self, timeout_s: float) -> bool:
        assert self._replay is not None
        found, complete = self._replay.fetch(self._next, timeout_s)
        for seq, payload in found:
            self._accept(seq, payload, replayed=True)
        if not complete:
            self._find(
                "replay-truncated", f"replay from {self._next} sent {len(found)} batches and no end marker"
            )
        return complete

    def _find(self, slug: str, detail: str) -> None:
        self.counts[slug] += 1
        self.findings.append(EventFault(slug, detail))

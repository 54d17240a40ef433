"""Subscribes to a worker's events: in order, gaps filled from replay, garbage counted, never raised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import zmq

from tierfuzz.clock import SYSTEM_CLOCK, Clock
from tierfuzz.codec import decode_batch
from tierfuzz.events import Batch, EventFault
from tierfuzz.worker.replay import MOST_BYTES, ReplayClient
from tierfuzz.worker.sequence import Arrival, Sequencer, arrivals

REPLAY_BOUND_S = 2.0
MOST_AT_ONCE = 100_000  # live messages a call; the rest waits for the next one
MOST_FINDINGS = 1000  # kept for take_findings(); all are counted
# Faults of an event that could be read: for the oracles, no matter of transport.
_READABLE = ("missing-medium", "unknown-medium")


class EventSubscriber:
    """Poll-based: nothing happens but in drain() and sync(). Waits on a replay only, and with a bound.

    Findings, by slug: malformed-frames, malformed-payload, sequence-gap (a batch is missing and in no replay,
    or has a number that cannot be), subscriber-restart, replay-truncated (no end mark in time),
    replay-differs (the worker remembers something else than it sent).
    `counts` holds all of them, and messages, duplicates and replayed, which are no faults.
    `tap` gets every message once, in the order of their numbers, with its payload as it came.
    `bind` for a worker that connects to its endpoint instead of binding it (reference 3.1).
    """

    def __init__(
        self,
        endpoint: str,
        replay_endpoint: str | None = None,
        clock: Clock = SYSTEM_CLOCK,
        topic: str = "",
        bind: bool = False,
    ) -> None:
        self._endpoint, self._topic, self._bind = endpoint, topic, bind
        self._clock = clock
        self._findings: list[EventFault] = []
        self._sequencer = Sequencer(self._find)
        self.counts: Counter[str] = self._sequencer.counts
        self._decoded: list[Batch] = []
        self._marked = 0
        self.tap: Callable[[Batch, bytes], None] | None = None
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._live = self._subscribe()
        self._replay = ReplayClient(self._context, replay_endpoint, clock) if replay_endpoint else None

    def _subscribe(self) -> zmq.Socket[bytes]:
        socket = self._context.socket(zmq.SUB)
        socket.set_hwm(0)
        socket.set(zmq.LINGER, 0)
        socket.set(zmq.MAXMSGSIZE, MOST_BYTES)
        socket.set(zmq.RECONNECT_IVL, 10)
        socket.subscribe(self._topic)
        (socket.bind if self._bind else socket.connect)(self._endpoint)
        return socket

    def close(self) -> None:
        """Close all sockets."""
        self._context.destroy(linger=0)

    @property
    def last_seq(self) -> int:
        """Newest sequence number that is in hand with everything before it; -1 before the first."""
        return self._sequencer.next - 1

    # reading ---------------------------------------------------------------------------------------
    def drain(self) -> list[Batch]:
        """Batches that have arrived, in the order of their numbers; each is returned once.

        Asks for a replay, REPLAY_BOUND_S at most, when what arrived does not continue what is in hand.
        """
        self._receive()
        if self._sequencer.unclear:
            self._reconcile(REPLAY_BOUND_S)
        self._decode()
        decoded, self._decoded = self._decoded, []
        return decoded

    def sync(self, timeout_s: float = REPLAY_BOUND_S) -> int | None:
        """Have everything in hand that the worker had published when asked; the newest number.

        None when the worker did not say in time, or has no replay socket. drain() then gives the batches.
        """
        self._receive()
        complete = self._reconcile(timeout_s)
        self._decode()
        return self.last_seq if complete else None

    def audit(self, timeout_s: float = REPLAY_BOUND_S) -> None:
        """Ask for a replay of all that came since mark(), as a reader would that lost everything.

        For a worker at rest; what is found stands in take_findings().
        """
        first = min(self._marked, self._sequencer.next)
        replay = self._fetch(first, self._clock.monotonic() + timeout_s)
        for text in self._sequencer.altered(replay or ()):
            self._find("replay-differs", text)
        self.mark()

    def mark(self) -> None:
        """The next audit asks for what comes from here on."""
        self._marked = self._sequencer.next

    def expect_restart(self) -> None:
        """The worker was ended on purpose: the next one counts from 0, and that is no finding.

        Call it when the old process is gone and before the new one is started; batches in hand stay.
        """
        self._receive()
        if self._sequencer.unclear:
            self._sequencer.believe()
        self._decode()
        self._sequencer.forget()
        if self._replay is not None:
            self._replay.reconnect()
        self._live.close(0)
        self._live = self._subscribe()

    def take_findings(self) -> list[EventFault]:
        """Findings since the last call, the first MOST_FINDINGS of them."""
        findings, self._findings = self._findings, []
        return findings

    # live ------------------------------------------------------------------------------------------
    def _receive(self) -> None:
        for _ in range(MOST_AT_ONCE):
            try:
                frames = self._live.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self.counts["messages"] += 1
            if len(frames) == 3 and len(frames[1]) == 8:
                seq = int.from_bytes(frames[1], "big")
                self._sequencer.offer(Arrival(seq, frames[2], self._clock.monotonic()))
            else:
                sizes = [len(frame) for frame in frames[:10]]
                detail = f"{len(frames)} frames of {sizes} bytes; expected topic, 8 bytes, payload"
                self._find("malformed-frames", detail)

    def _decode(self) -> None:
        for seq, payload, received, replayed in self._sequencer.take():
            batch = decode_batch(seq, payload, received, replayed)
            unreadable = [f.detail for f in batch.faults if f.slug not in _READABLE]
            if unreadable:
                self._find("malformed-payload", f"batch {seq}: {'; '.join(unreadable[:5])}")
            self._decoded.append(batch)
            if self.tap is not None:
                self.tap(batch, payload)

    def _find(self, slug: str, detail: str) -> None:
        self.counts[slug] += 1
        if len(self._findings) < MOST_FINDINGS:
            self._findings.append(EventFault(slug, detail))

    # replay ----------------------------------------------------------------------------------------
    def _reconcile(self, timeout_s: float) -> bool:
        """Compare with the worker's own memory; False, and the live order believed, when it cannot be had."""
        deadline = self._clock.monotonic() + timeout_s
        replay = self._fetch(self._sequencer.anchor, deadline)
        if replay is not None and not self._sequencer.recognises(replay):
            replay = self._fetch(0, deadline)
            if replay is not None and self._sequencer.contradicted_by(replay):
                self._sequencer.restart("its replay holds other batches under known numbers")
        if not replay:
            self._sequencer.believe()  # nothing to compare with: no socket, no answer, no memory
        else:
            self._sequencer.merge(replay)
        return replay is not None

    def _fetch(self, first: int, deadline: float) -> list[Arrival] | None:
        """A complete replay, or None."""
        if self._replay is None:
            return None
        replay = self._replay.fetch(first, max(0.0, deadline - self._clock.monotonic()))
        for sizes in replay.malformed:
            self._find("malformed-frames", f"replay with frames of {sizes} bytes")
        if not replay.complete:
            detail = f"replay from {first} brought {len(replay.batches)} batches and no end mark in time"
            self._find("replay-truncated", detail)
            return None
        return arrivals(replay.batches, self._clock.monotonic())

"""Live consumers: code of others behind real sockets. What they have heard is proven before they are asked.

Behind what was delivered a marker is published: a page that nobody else has, as a chain of its own, in every
tier that is asked about. When the consumer shows it, it has heard everything that was published before. A
marker that does not show within the patience makes the source `deaf`: the consumer is asked all the same, and
what it says may be old.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from tierfuzz.clock import SYSTEM_CLOCK, Clock
from tierfuzz.codec import encode_batch
from tierfuzz.consumers.base import Overlap, Source
from tierfuzz.errors import EnvironmentFailure
from tierfuzz.events import Batch, BlockStored, Tier
from tierfuzz.hashing import page_hashes
from tierfuzz.routers.publisher import LivePublisher

MEDIA = {Tier.DEVICE: "GPU", Tier.HOST: "CPU_PINNED"}
FIRST_MARKER = 1 << 24  # tokens from here on are of markers; vocabularies are smaller
PATIENCE_S = 1.0  # at least; a source that is heard takes milliseconds
LOOKS = 40  # ... and at least so many answers of the consumer without it
PRIME_BOUND_S, PRIME_WAIT_S = 20.0, 0.1
FIRST_WAIT_S, LONGEST_WAIT_S = 0.0005, 0.02


class Marker(msgspec.Struct, frozen=True):
    """One page for each tier that is asked about: tokens by tier."""

    pages: dict[Tier, tuple[int, ...]]

    def events(self, size: int) -> tuple[BlockStored, ...]:
        """Its stores, each a chain of one page."""
        return tuple(
            BlockStored(tuple(page_hashes(tokens, size)), None, tokens, size, MEDIA[tier])
            for tier, tokens in self.pages.items()
        )


@dataclass
class Channel:
    """One source: its sockets, and the numbers on the wire, where markers count too.

    `sent`: payloads by the number that the caller gave, with the number on the wire. `last`: the newest on
    the wire. `unproven`: something was sent since the last marker.
    """

    publisher: LivePublisher
    page_size: int
    sent: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    newest: int = -1
    last: int = -1
    unproven: bool = False
    deaf: bool = False

    def number(self, seq: int, payload: bytes) -> int:
        """The number on the wire: again the same for a repeat, after a gap the same gap, from `seq` in a new
        process, which a known number with other content comes from."""
        known = self.sent.get(seq)
        if known is not None and known[1] == payload:
            return known[0]
        if seq <= self.newest:
            self.sent.clear()
            self.publisher.forget()
            self.newest, self.last = -1, -1
        wire = self.last + seq - self.newest
        self.sent[seq] = (wire, payload)
        self.newest, self.last = seq, wire
        return wire


class LiveConsumer(ABC):
    """A consumer of others. Subclasses attach it to sockets and ask it; all else is here.

    `tiers`: those that it is asked about, with a marker in each. `primed`: behind its subscriber there is
    another hop, which is open when a marker comes through.
    """

    name: str
    primed = False
    tiers: tuple[Tier, ...] = (Tier.DEVICE, Tier.HOST)

    def __init__(self, clock: Clock = SYSTEM_CLOCK, patience_s: float = PATIENCE_S) -> None:
        self.clock, self.patience_s = clock, patience_s
        self.channels: dict[Source, Channel] = {}
        self._markers = 0

    # what a subclass says ---------------------------------------------------------------------------
    @abstractmethod
    def attach(self, worker: int, page_size: int, channels: Mapping[int, Channel]) -> None:
        """Make it subscribe to the sockets of these ranks of a worker, and expect their replays."""

    @abstractmethod
    def detach(self, worker: int, rank: int | None) -> None:
        """Tell it that a worker, or one rank, is gone."""

    @abstractmethod
    def ask(self, tokens: Sequence[int], namespace: str) -> Overlap:
        """Leading pages by source and tier, as it says now."""

    @abstractmethod
    def choose(self, tokens: Sequence[int], loads: Mapping[int, float], namespace: str) -> int:
        """The worker that it routes a prompt to."""

    @abstractmethod
    def refresh(self) -> None:
        """What was read before may be old: called before each look for a marker."""

    def publisher(self) -> LivePublisher:
        """Sockets for one source."""
        return LivePublisher(self.clock)

    # the protocol of consumers ----------------------------------------------------------------------
    def register(self, worker: int, page_size: int, ranks: int = 1) -> None:
        """Open sockets for a worker, and wait until the consumer has subscribed to each."""
        fresh = {rank: Channel(self.publisher(), page_size) for rank in range(ranks)}
        self.channels.update({(worker, rank): channel for rank, channel in fresh.items()})
        self.attach(worker, page_size, fresh)
        for channel in fresh.values():
            channel.publisher.wait_joined(self.name)
        if self.primed:
            self._prime({(worker, rank): channel for rank, channel in fresh.items()})

    def deregister(self, worker: int, rank: int | None = None) -> None:
        """Its sockets stay open: a consumer that still listens would hear what comes."""
        self.detach(worker, rank)
        for source in [known for known in self.channels if known[0] == worker and rank in (None, known[1])]:
            self.channels.pop(source).publisher.close()

    def deliver(self, worker: int, rank: int, seq: int, payload: bytes) -> None:
        """Publish one message."""
        channel = self.channels[worker, rank]
        channel.publisher.send(channel.number(seq, payload), payload)
        channel.unproven = True

    def wanted(self) -> list[tuple[int, int, int]]:
        """Nothing: it asks over its own socket."""
        return []

    def overlap(self, tokens: Sequence[int], namespace: str = "") -> Overlap:
        """What it claims, when it has heard everything that was delivered."""
        self.settle()
        return self.ask(tokens, namespace)

    def route(self, tokens: Sequence[int], loads: Mapping[int, float], namespace: str = "") -> int:
        """Where it sends a prompt, when it has heard everything that was delivered."""
        self.settle()
        return self.choose(tokens, loads, namespace)

    def reset(self) -> None:
        """Start over: nothing of what was said before may be left."""
        self.close()

    def close(self) -> None:
        """Forget every worker, and close the sockets."""
        for worker in sorted({worker for worker, _ in self.channels}):
            self.deregister(worker)

    def deaf(self) -> list[Source]:
        """Sources whose newest messages it has not heard, although there was time."""
        return sorted(source for source, channel in self.channels.items() if channel.deaf)

    # markers ----------------------------------------------------------------------------------------
    def settle(self) -> None:
        """Publish a marker behind what was delivered, and wait until the consumer shows it."""
        open_ = {source: channel for source, channel in self.channels.items() if channel.unproven}
        if not open_:
            return
        markers = {source: self._mark(source, channel) for source, channel in open_.items()}
        silent = self._await(markers, self.patience_s)
        for source, channel in open_.items():
            channel.unproven, channel.deaf = False, source in silent

    def _await(self, markers: Mapping[Source, Marker], patience_s: float) -> set[Source]:
        """Look for markers until they show; the sources whose marker did not.

        The time counts only together with the looks: on a machine that stands still both do.
        """
        left, wait, looks, start = dict(markers), FIRST_WAIT_S, 0, self.clock.monotonic()
        while True:
            self._serve()
            self.refresh()
            left = {source: one for source, one in left.items() if not self._shows(source, one)}
            looks += 1
            if not left or (looks >= LOOKS and self.clock.monotonic() - start >= patience_s):
                return set(left)
            self.clock.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT_S)

    def _prime(self, fresh: Mapping[Source, Channel]) -> None:
        """Markers until one of each source shows."""
        for source, channel in fresh.items():
            deadline = self.clock.monotonic() + PRIME_BOUND_S
            channel.deaf = True
            while channel.deaf:
                if self.clock.monotonic() >= deadline:
                    raise EnvironmentFailure(f"{self.name} heard nothing of {source} in {PRIME_BOUND_S:g} s")
                channel.deaf = bool(self._await({source: self._mark(source, channel)}, PRIME_WAIT_S))

    def _mark(self, source: Source, channel: Channel) -> Marker:
        size = channel.page_size
        pages = {}
        for tier in self.tiers:
            first = FIRST_MARKER + self._markers * size
            pages[tier] = tuple(range(first, first + size))
            self._markers += 1
        marker = Marker(pages)
        channel.last += 1
        batch = Batch(channel.last, float(self._markers), source[1], marker.events(size))
        channel.publisher.send(channel.last, encode_batch(batch, "map"))
        return marker

    def _shows(self, source: Source, marker: Marker) -> bool:
        return all(
            self.ask(tokens, "").get(source, {}).get(tier, 0) == 1 for tier, tokens in marker.pages.items()
        )

    def _serve(self) -> None:
        for channel in self.channels.values():
            channel.publisher.serve()

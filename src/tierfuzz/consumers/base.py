"""What every consumer of events offers: to be fed, to be asked, to start over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tierfuzz.events import Tier

Source = tuple[int, int]  # worker and rank: a sequence of its own, a cache of its own
Overlap = dict[Source, dict[Tier, int]]


class Consumer(Protocol):
    """A router or an index that hears what workers publish and says what they hold.

    Whoever drives it asks `wanted()` after a delivery and answers each wish with deliver(), in order, with
    as much as there is, before it delivers or asks anything else. A wish that is answered and comes back is
    answered once more; it is the consumer that has to give up.
    """

    name: str

    def register(self, worker: int, page_size: int, ranks: int = 1) -> None:
        """Expect messages of ranks 0 to `ranks` - 1 of this worker; `page_size` in tokens."""

    def deregister(self, worker: int, rank: int | None = None) -> None:
        """The worker, or one rank of it, is gone: nothing may be claimed for it any more."""

    def deliver(self, worker: int, rank: int, seq: int, payload: bytes) -> None:
        """One message as it came off the wire, live or replayed."""

    def wanted(self) -> list[tuple[int, int, int]]:
        """(worker, rank, first sequence number) of replays that it asks for."""

    def overlap(self, tokens: Sequence[int], namespace: str = "") -> Overlap:
        """Leading whole pages of a prompt that are claimed in each tier, each tier for itself.

        `namespace` as the events name it (their cache salt), "" for none. Who holds nothing may be left out.
        """

    def route(self, tokens: Sequence[int], loads: Mapping[int, float], namespace: str = "") -> int:
        """The worker for a prompt, of those in `loads` (any unit, more is busier)."""

    def reset(self) -> None:
        """The consumer restarts: it knows no worker and no page."""

"""What events say of the pages of a prompt, with the doubts that aliasing and silent revival leave (6.6)."""

from __future__ import annotations

from dataclasses import dataclass

from tierfuzz.events import AllBlocksCleared, Batch, BlockRemoved, BlockStored, Tier
from tierfuzz.ledger import Ledger


@dataclass(frozen=True)
class Interval:
    """Pages: at least `low`, at most `high`."""

    low: int
    high: int

    def holds(self, pages: int) -> bool:
        """Whether a number of pages lies inside."""
        return self.low <= pages <= self.high


@dataclass(frozen=True)
class PrefixView:
    """Leading pages of a prompt that are cached at all, and that are on device."""

    total: Interval
    device: Interval


class EventView:
    """Over the ledger of one worker, rank 0."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._revived: set[int] = set()
        self._owners: dict[int, set[str]] = {}

    def begin(self, namespace: str, hashes: tuple[int, ...]) -> None:
        """A namespace may hold these blocks from now on."""
        for h in hashes:
            self._owners.setdefault(h, set()).add(namespace)

    def candidates(self, hashes: tuple[int, ...]) -> None:
        """Pages that a request may have brought back to the device without an event (B7)."""
        for h in hashes:
            if self.on_host(h) and not self.on_device(h):
                self._revived.add(h)

    def apply(self, batch: Batch) -> None:
        """Doubts that this batch settles; the ledger has its own copy of the batch."""
        for event in batch.events:
            if isinstance(event, AllBlocksCleared):
                self._revived.clear()
            elif (
                isinstance(event, BlockStored | BlockRemoved) and event.tier is Tier.DEVICE and self._revived
            ):
                self._revived.difference_update(event.hashes)

    def clear(self) -> None:
        """The worker is empty."""
        self._revived.clear()
        self._owners.clear()

    def may_be_revived(self, h: int) -> bool:
        """The page may be on device although no event says so."""
        return h in self._revived

    def ambiguous(self, h: int) -> bool:
        """Several namespaces share this hash, so a claim does not say whose copy it is (B6c)."""
        return len(self._owners.get(h, ())) > 1

    def on_device(self, h: int) -> int:
        """Announced device copies."""
        return self.ledger.count(0, Tier.DEVICE, h)

    def on_host(self, h: int) -> int:
        """Announced host copies."""
        return self.ledger.count(0, Tier.HOST, h)

    def leading_on_host(self, namespace: str, hashes: tuple[int, ...]) -> int:
        """Leading pages that are surely announced on host for this namespace."""
        return _leading([bool(self.on_host(h)) and self._own(namespace, h) for h in hashes])

    def prefix(self, namespace: str, hashes: tuple[int, ...]) -> PrefixView:
        """Intervals for a prompt, `hashes` being the pages that a match may use."""
        sure = [bool(self._copies(h)) and self._own(namespace, h) for h in hashes]
        maybe = [bool(self._copies(h)) and self._may_own(namespace, h) for h in hashes]
        device = [bool(self.on_device(h)) and self._own(namespace, h) for h in hashes]
        device_maybe = [
            (bool(self.on_device(h)) or self.may_be_revived(h)) and self._may_own(namespace, h)
            for h in hashes
        ]
        return PrefixView(
            Interval(_leading(sure), _leading(maybe)), Interval(_leading(device), _leading(device_maybe))
        )

    def _copies(self, h: int) -> int:
        return self.on_device(h) + self.on_host(h)

    def _own(self, namespace: str, h: int) -> bool:
        return self._owners.get(h) == {namespace}

    def _may_own(self, namespace: str, h: int) -> bool:
        return namespace in self._owners.get(h, ())


def _leading(flags: list[bool]) -> int:
    return flags.index(False) if False in flags else len(flags)

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
        self._certain: dict[tuple[Tier, int], set[str]] = {}
        self.in_flight: str | None = None  # namespace of the only request that can cause events now
        self.backs_up_own = True  # host stores of a lone request are of its own pages (not under write_back)

    def begin(self, namespace: str, hashes: tuple[int, ...]) -> None:
        """A namespace may hold these blocks from now on."""
        for h in hashes:
            self._owners.setdefault(h, set()).add(namespace)

    def candidates(self, hashes: tuple[int, ...]) -> None:
        """Pages that a request may have brought back to the device without an event (B7)."""
        for h in hashes:
            if self.on_host(h) and (not self.on_device(h) or self.ambiguous(h)):
                self._revived.add(h)

    def apply(self, batch: Batch) -> None:
        """Doubts that this batch settles or raises; the ledger has its own copy of the batch."""
        for event in batch.events:
            if isinstance(event, AllBlocksCleared):
                self._revived.clear()
                self._certain.clear()
                continue
            self._follow_owners(event)
            if isinstance(event, BlockStored | BlockRemoved) and event.tier is Tier.DEVICE and self._revived:
                self._revived.difference_update(h for h in event.hashes if not self.ambiguous(h))

    def _follow_owners(self, event: BlockStored | BlockRemoved) -> None:
        """Whose copy a store adds; after a removal it is open whose copies are left."""
        if isinstance(event, BlockRemoved):
            for h in event.hashes:
                self._certain.pop((event.tier, h), None)
        elif self.in_flight is not None and (event.tier is Tier.DEVICE or self.backs_up_own):
            for h in event.hashes:
                self._certain.setdefault((event.tier, h), set()).add(self.in_flight)

    def clear(self) -> None:
        """The worker is empty."""
        self._revived.clear()
        self._certain.clear()
        self._owners.clear()

    def knows(self, h: int) -> bool:
        """Some request has this block among the pages of its prompt or of what it was answered."""
        return h in self._owners

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
        return _leading([self.surely_on_host(namespace, h) for h in hashes])

    def prefix(self, namespace: str, hashes: tuple[int, ...]) -> PrefixView:
        """Intervals for a prompt, `hashes` being the pages that a match may use."""
        sure = [self._surely_held(namespace, h) for h in hashes]
        maybe = [
            (bool(self._copies(h)) or self.may_be_revived(h)) and self._may_own(namespace, h) for h in hashes
        ]
        device = [self.surely_on_device(namespace, h) for h in hashes]
        device_maybe = [
            (bool(self.on_device(h)) or self.may_be_revived(h)) and self._may_own(namespace, h)
            for h in hashes
        ]
        return PrefixView(
            Interval(_leading(sure), _leading(maybe)), Interval(_leading(device), _leading(device_maybe))
        )

    def _copies(self, h: int) -> int:
        return self.on_device(h) + self.on_host(h)

    def surely_on_host(self, namespace: str, h: int) -> bool:
        """This namespace has a host copy: it is the only owner, or there are copies for all owners."""
        return self._may_own(namespace, h) and self._sure(Tier.HOST, namespace, h)

    def surely_on_device(self, namespace: str, h: int) -> bool:
        """This namespace has a device copy."""
        return self._may_own(namespace, h) and self._sure(Tier.DEVICE, namespace, h)

    def _sure(self, tier: Tier, namespace: str, h: int) -> bool:
        if namespace in self._certain.get((tier, h), ()):
            return True
        return self.ledger.count(0, tier, h) >= len(self._owners[h])

    def _surely_held(self, namespace: str, h: int) -> bool:
        return self.surely_on_host(namespace, h) or self.surely_on_device(namespace, h)

    def _may_own(self, namespace: str, h: int) -> bool:
        return namespace in self._owners.get(h, ())


def _leading(flags: list[bool]) -> int:
    return flags.index(False) if False in flags else len(flags)

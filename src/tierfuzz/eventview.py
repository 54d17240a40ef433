"""What events say of the pages of a prompt, with the doubts that aliasing and silent revival leave (6.6).

A block that one namespace owns is where the ledger says. A block that several own, or that may have been
revived without an event, has for each tier a set of possibilities: whose copies there may be. A store adds
the copy of a namespace in flight, a removal takes any one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import combinations

from tierfuzz.events import AllBlocksCleared, Batch, BlockRemoved, BlockStored, Tier
from tierfuzz.ledger import Ledger

Copies = frozenset[str]  # namespaces that hold a copy
MOST_POSSIBILITIES = 64  # beyond it nothing is said of the block any more
NOBODY: Copies = frozenset()


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
    """Over the ledger of one worker, rank 0.

    `in_flight`: namespaces whose requests can cause stores now (None: any). `backs_up_own`: a host store is
    of a request's own pages; not under write_back, where it is of what had to leave the device.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.in_flight: Collection[str] | None = None
        self.backs_up_own = True
        self.clear()

    def clear(self) -> None:
        """The worker is empty."""
        self._owners: dict[int, tuple[str, ...]] = {}
        self._loose: set[tuple[str, int | None]] = set()
        self._doubts: dict[tuple[Tier, int], set[Copies] | None] = {}
        self._perhaps_revived: list[tuple[str, int]] = []
        self._doubled: set[int] = set()  # had two copies in a tier: another owner may come to light
        self._ever_doubted: set[int] = set()  # may have been revived since the worker was empty
        self._sent: set[tuple[str, int]] = set()  # pages of requests since rest was last proved

    # what happens ----------------------------------------------------------------------------------
    def begin(self, namespace: str, hashes: tuple[int, ...], late: bool = False) -> None:
        """These blocks may be held for a namespace now; `late`: events of that may be booked already."""
        self._sent.update((namespace, h) for h in hashes)
        for h in hashes:
            owners = self._owners.get(h, ())
            if namespace in owners:
                continue
            self._owners[h] = (*owners, namespace)
            if owners:
                for tier in (Tier.DEVICE, Tier.HOST):
                    self._share(tier, h, owners, namespace, late)

    def _share(self, tier: Tier, h: int, owners: tuple[str, ...], newcomer: str, late: bool) -> None:
        """A block gets one more owner, whose copies (if `late`) were taken for those of the others."""
        count = self.ledger.count(0, tier, h)
        known = self._doubts.get((tier, h), {frozenset(owners) if count else NOBODY})
        if late and known is not None:
            everybody = (*owners, newcomer)
            sizes = {min(count, len(everybody))}
            if tier is Tier.DEVICE and h in self._ever_doubted:
                sizes.update(range(count, len(everybody) + 1))
            known = {frozenset(held) for size in sizes for held in combinations(everybody, size)}
        self._doubts[tier, h] = known if known is None or len(known) <= MOST_POSSIBILITIES else None

    def candidates(self, namespace: str, hashes: tuple[int, ...]) -> None:
        """Pages that a request may bring back to the device without an event (B7). Asked again at rest: only
        then is it known what was on host and not on device."""
        self._perhaps_revived += [(namespace, h) for h in hashes]
        self._doubt_device(self._perhaps_revived[-len(hashes) :] if hashes else ())

    def loosen(self, namespace: str, hashes: tuple[int, ...]) -> None:
        """One more page than these may have come to the device, with a token that no reply told of (B15)."""
        self._loose.add((namespace, hashes[-1] if hashes else None))

    def rested(self) -> None:
        """Every event is in hand."""
        self._doubt_device(self._perhaps_revived)
        self._perhaps_revived.clear()
        self._sent.clear()

    def apply(self, batch: Batch) -> None:
        """Doubts that this batch settles or raises; the ledger has booked it already."""
        for event in batch.events:
            if isinstance(event, AllBlocksCleared):
                self._forget_copies()
                continue
            for h in event.hashes:
                if self.ledger.count(0, event.tier, h) > 1:
                    self._doubled.add(h)
                if (event.tier, h) in self._doubts:
                    self._follow(event, h)

    def learn(self, tier: Tier, namespace: str, h: int) -> None:
        """A request was served this page from this tier, and no event has removed the block since."""
        known = self._doubts.get((tier, h))
        kept = {copies for copies in known if namespace in copies} if known else set()
        if kept:
            self._settle(tier, h, kept)

    def _forget_copies(self) -> None:
        """No copy is left; blocks of several owners start from that."""
        several = {h for _, h in self._doubts if len(self._owners.get(h, ())) > 1}
        self._doubts = {(tier, h): {NOBODY} for h in several for tier in (Tier.DEVICE, Tier.HOST)}

    def _doubt_device(self, pages: Iterable[tuple[str, int]]) -> None:
        for namespace, h in pages:
            if not self.may_be_on(Tier.HOST, namespace, h) or self.surely_on_device(namespace, h):
                continue
            known = self._doubts.setdefault((Tier.DEVICE, h), self._certain(Tier.DEVICE, h))
            self._ever_doubted.add(h)
            if known is not None:
                known |= {copies | {namespace} for copies in known}

    def _follow(self, event: BlockStored | BlockRemoved, h: int) -> None:
        known = self._doubts[event.tier, h]
        if known is None:
            return
        if isinstance(event, BlockStored):
            suspects = self.suspects(event.tier, h)
            after = {copies | {who} for copies in known for who in suspects if who not in copies}
        else:
            after = {copies - {who} for copies in known for who in copies}
        # Nothing fits where an event is an anomaly of its own: then the old doubts stay.
        self._settle(event.tier, h, after or (known if isinstance(event, BlockStored) else {NOBODY}))

    def _settle(self, tier: Tier, h: int, after: set[Copies]) -> None:
        """Note what is possible now; a block of one owner needs no note once the ledger says it all."""
        if len(self._owners.get(h, ())) < 2 and after == self._certain(tier, h):
            del self._doubts[tier, h]
        else:
            self._doubts[tier, h] = after if len(after) <= MOST_POSSIBILITIES else None

    def suspects(self, tier: Tier, h: int) -> tuple[str, ...]:
        """Namespaces whose copy a store of this block adds."""
        owners = self._owners.get(h, ())
        if self.in_flight is None or (tier is Tier.HOST and not self.backs_up_own):
            return owners
        return tuple(who for who in owners if who in self.in_flight) or owners

    def newcomer_possible(self, h: int) -> bool:
        """A request in flight may come to this block with its outputs, under a namespace not noted yet."""
        owners = self._owners.get(h, ())
        return self.in_flight is None or any(who not in owners for who in self.in_flight)

    def _certain(self, tier: Tier, h: int) -> set[Copies]:
        """What the ledger alone says of a block that has one owner."""
        return {frozenset(self._owners.get(h, ())) if self.ledger.count(0, tier, h) else NOBODY}

    # questions -------------------------------------------------------------------------------------
    def owners(self, h: int) -> tuple[str, ...]:
        """Namespaces of which a request has computed, or may compute, this block; () for an unknown block."""
        return self._owners.get(h, ())

    def ambiguous(self, h: int) -> bool:
        """Several namespaces share this hash, so a claim does not say whose copy it is (B6c)."""
        return len(self._owners.get(h, ())) > 1 or h in self._doubled

    def may_be_revived(self, h: int) -> bool:
        """The page may be on device although no event says so: also one on host that a request since rest has
        come to, for it may revive it, and lose it again before its reply tells."""
        if self.on_host(h) > self.on_device(h) and any((who, h) in self._sent for who in self.owners(h)):
            return True
        if (Tier.DEVICE, h) not in self._doubts:
            return False
        known = self._doubts[Tier.DEVICE, h]
        return known is None or max(map(len, known)) > self.on_device(h)

    def on_device(self, h: int) -> int:
        """Announced device copies."""
        return self.ledger.count(0, Tier.DEVICE, h)

    def on_host(self, h: int) -> int:
        """Announced host copies."""
        return self.ledger.count(0, Tier.HOST, h)

    def surely_on_host(self, namespace: str, h: int) -> bool:
        """This namespace has a host copy."""
        return self._surely_on(Tier.HOST, namespace, h)

    def surely_on_device(self, namespace: str, h: int) -> bool:
        """This namespace has a device copy."""
        return self._surely_on(Tier.DEVICE, namespace, h)

    def surely_held(self, namespace: str, h: int) -> bool:
        """This namespace has a copy on device or on host."""
        return self.surely_on_host(namespace, h) or self.surely_on_device(namespace, h)

    def _surely_on(self, tier: Tier, namespace: str, h: int) -> bool:
        if (tier, h) not in self._doubts:
            return namespace in self._owners.get(h, ()) and self.ledger.count(0, tier, h) > 0
        known = self._doubts[tier, h]
        return known is not None and all(namespace in copies for copies in known)

    def may_be_on(self, tier: Tier, namespace: str, h: int) -> bool:
        """This namespace may have a copy in the tier."""
        if (tier, h) not in self._doubts:
            return namespace in self._owners.get(h, ()) and self.ledger.count(0, tier, h) > 0
        known = self._doubts[tier, h]
        return known is None or any(namespace in copies for copies in known)

    def leading_on_host(self, namespace: str, hashes: tuple[int, ...]) -> int:
        """Leading pages that are surely announced on host for this namespace."""
        return _leading([self.surely_on_host(namespace, h) for h in hashes])

    def prefix(self, namespace: str, hashes: tuple[int, ...]) -> PrefixView:
        """Intervals for a prompt, `hashes` being the pages that a match may use."""
        sure = [self.surely_held(namespace, h) for h in hashes]
        device = [self.surely_on_device(namespace, h) for h in hashes]
        device_maybe = [
            self.may_be_on(Tier.DEVICE, namespace, h) or (namespace, before) in self._loose
            for before, h in zip((None, *hashes), hashes, strict=False)
        ]
        maybe = [
            there or self.may_be_on(Tier.HOST, namespace, h)
            for there, h in zip(device_maybe, hashes, strict=True)
        ]
        return PrefixView(
            Interval(_leading(sure), _leading(maybe)), Interval(_leading(device), _leading(device_maybe))
        )


def _leading(flags: list[bool]) -> int:
    return flags.index(False) if False in flags else len(flags)

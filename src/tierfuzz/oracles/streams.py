"""Oracles over the event stream: anomalies of the ledger, the order of a page's tier events."""

from __future__ import annotations

from tierfuzz.events import Batch, BlockRemoved, BlockStored, KvEvent, Tier
from tierfuzz.eventview import EventView
from tierfuzz.ledger import Ledger
from tierfuzz.oracles.burst import BurstWatch
from tierfuzz.oracles.docket import Docket
from tierfuzz.oracles.registry import ORACLE_OF_FAULT
from tierfuzz.program import FleetConfig
from tierfuzz.traits import Traits


class Stream:
    """Books batches and judges each event where it stands; `announced` counts what was seen for reach."""

    def __init__(
        self,
        docket: Docket,
        ledger: Ledger,
        view: EventView,
        fleet: FleetConfig,
        traits: Traits,
        storage: bool,
    ) -> None:
        self._docket = docket
        self._ledger = ledger
        self._view = view
        self._policy = fleet.policy
        self._foreign = not fleet.starts_empty  # blocks from before may be there: nothing is said of them
        self._traits = traits
        self._storage = storage
        self.watch: BurstWatch | None = None
        self.strangers: set[int] = set()  # stored on device, in no request that is known yet
        self.uncopied: set[int] = set()  # device-resident blocks without an announced host copy
        self.dropped: set[int] = set()  # left the device without one
        self._below: dict[int, set[int]] = {}  # blocks that were ever stored right after one

    def clear(self) -> None:
        """The worker is empty."""
        self.strangers.clear()
        self.uncopied.clear()
        self.dropped.clear()
        self._below.clear()

    def apply(self, batch: Batch, operation: str) -> None:
        """Judge and book one batch; `operation` is the one under way."""
        for fault in batch.faults:
            self._docket.violation(
                ORACLE_OF_FAULT[fault.slug],
                operation,
                f"batch {batch.seq}: {fault.detail}",
                facts={"fault": fault.slug},
            )
        self._count_holds(batch)
        for event in batch.events:
            single = Batch(batch.seq, batch.ts, batch.rank, (event,))
            self._judge_order(single, operation)
            self._judge_leaf_first(single, operation)
            self._judge_size(single, operation)
            self._watch_stores(event)
            self._book(single, operation)
            self._view.apply(single)
            self._watch_removals(event)
            self._follow(single)

    def _watch_stores(self, event: KvEvent) -> None:
        if not isinstance(event, BlockStored) or event.tier is not Tier.DEVICE:
            return
        if not self._foreign:
            self.strangers.update(h for h in event.hashes if not self._view.owners(h))
        if self.watch is not None:
            for h in event.hashes:
                self.watch.before_store(self._view, h)

    def _watch_removals(self, event: KvEvent) -> None:
        if self.watch is not None and isinstance(event, BlockRemoved):
            for h in event.hashes:
                self.watch.after_removal(self._view, h)

    def _count_holds(self, batch: Batch) -> None:
        found = {ORACLE_OF_FAULT[fault.slug] for fault in batch.faults}
        for slug in ("malformed-event", "missing-medium", "unknown-medium", "sequence-gap"):
            if slug not in found:
                self._docket.holds(slug)

    def _book(self, single: Batch, operation: str) -> None:
        found = [a for a in self._ledger.apply(single) if a.slug in ORACLE_OF_FAULT]
        # What storage holds is not the worker's own: others write and clear it too.
        anomalies = [a for a in found if self._ours(a.hash) and a.tier is not Tier.STORAGE]
        parent = getattr(single.events[0], "parent", None)
        for anomaly in anomalies[:1]:
            self._docket.violation(
                ORACLE_OF_FAULT[anomaly.slug],
                operation,
                f"batch {anomaly.seq}, block {anomaly.hash} in {anomaly.tier}: {anomaly.detail}",
                facts={
                    "anomaly": anomaly.slug,
                    "tier": str(anomaly.tier),
                    "shared_hash": self._view.ambiguous(anomaly.hash),
                    "newcomer_possible": self._view.newcomer_possible(anomaly.hash),
                    "revival_candidate": self._view.may_be_revived(anomaly.hash),
                    "parent_left_device": parent in self.dropped,
                    "blocks": len(anomalies),
                },
            )
        if not anomalies:
            for slug in ("orphan-parent", "unmatched-removal", "duplicate-store"):
                self._docket.holds(slug)

    def _ours(self, h: int) -> bool:
        """A page of some request of this case, or of a worker that was empty before it."""
        return not self._foreign or bool(self._view.owners(h))

    def _judge_order(self, single: Batch, operation: str) -> None:
        """A host store of a backup: device copy still there, or just removed, by policy (reference 4)."""
        event = single.events[0]
        if not isinstance(event, BlockStored) or event.tier is not Tier.HOST or self._storage:
            return
        wrong = [h for h in event.hashes if self._ours(h) and self._wrong_order(h)]
        when = "before" if self._removal_first else "after"
        self._docket.check(
            not wrong,
            "event-order",
            operation,
            f"batch {single.seq}: host store of block {wrong[0] if wrong else 0} {when} its device removal, "
            f"against {self._policy}",
            facts={"policy": self._policy, "blocks": len(wrong)},
        )

    def _judge_leaf_first(self, single: Batch, operation: str) -> None:
        """A host copy leaves after those below it, which no match reaches without it. Not under write_back,
        where a lost subtree is announced from its top (reference 4, drop)."""
        event = single.events[0]
        if not isinstance(event, BlockRemoved) or event.tier is not Tier.HOST:
            return
        if self._storage or self._policy == "write_back":
            return
        wrong = [h for h in event.hashes if self._below_on_host(h, event.hashes)]
        self._docket.check(
            not wrong,
            "event-order",
            operation,
            f"batch {single.seq}: block {wrong[0] if wrong else 0} leaves the host before what hangs below "
            "it there",
            facts={"policy": self._policy, "blocks": len(wrong)},
        )

    def _below_on_host(self, h: int, together: tuple[int, ...]) -> bool:
        children = [child for child in self._below.get(h, ()) if child not in together]
        return not self._view.ambiguous(h) and any(
            self._view.on_host(child) and not self._view.ambiguous(child) for child in children
        )

    def _judge_size(self, single: Batch, operation: str) -> None:
        """Routers cut prompts at the advertised size: with another one in the events no look-up ever hits."""
        event, advertised = single.events[0], self._traits.advertised
        if advertised is None or not isinstance(event, BlockStored):
            return
        if event.block_size == advertised:
            self._docket.holds("advertised-size")
            return
        self._docket.violation(
            "advertised-size",
            operation,
            f"batch {single.seq}: blocks of {event.block_size} tokens; the worker advertises {advertised}",
            facts={"block_size": event.block_size, "advertised": advertised},
        )

    @property
    def _removal_first(self) -> bool:
        return self._policy == "write_back" and self._traits.removal_first

    def _wrong_order(self, h: int) -> bool:
        if self._view.ambiguous(h) or self._view.may_be_revived(h):
            return False
        return bool(self._view.on_device(h)) == self._removal_first

    def _follow(self, single: Batch) -> None:
        event = single.events[0]
        if isinstance(event, BlockStored):
            for parent, child in zip((event.parent, *event.hashes), event.hashes, strict=False):
                if parent is not None:
                    self._below.setdefault(parent, set()).add(child)
            if event.tier is Tier.DEVICE:
                self.uncopied.update(h for h in event.hashes if not self._view.on_host(h))
            elif event.tier is Tier.HOST:
                self.uncopied.difference_update(event.hashes)
                self.dropped.difference_update(event.hashes)
        elif isinstance(event, BlockRemoved):
            if event.tier is Tier.DEVICE:
                self.dropped.update(h for h in event.hashes if not self._view.on_host(h))
                self.uncopied.difference_update(event.hashes)
            elif event.tier is Tier.HOST:
                self.uncopied.update(h for h in event.hashes if self._view.on_device(h))
        else:
            self.clear()

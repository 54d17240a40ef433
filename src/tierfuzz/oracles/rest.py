"""Oracles about a worker at rest: capacity, backup, leaks, an empty ledger after a flush."""

from __future__ import annotations

from collections import Counter

from tierfuzz.events import BlockRemoved, KvEvent, Tier
from tierfuzz.eventview import EventView
from tierfuzz.forecast.history import History
from tierfuzz.ledger import Ledger
from tierfuzz.oracles.docket import Docket, Facts
from tierfuzz.oracles.early import EarlyBackups
from tierfuzz.oracles.streams import Stream
from tierfuzz.oracles.unheard import Unheard
from tierfuzz.program import FleetConfig


class RestChecks:
    """Asked whenever rest was proved and every event is in hand."""

    def __init__(
        self,
        docket: Docket,
        fleet: FleetConfig,
        ledger: Ledger,
        view: EventView,
        stream: Stream,
        history: History,
        storage: bool,
    ) -> None:
        self._docket = docket
        self._fleet = fleet
        self._ledger = ledger
        self._view = view
        self._stream = stream
        self._history = history
        self._storage = storage
        self._pages = {
            Tier.DEVICE: fleet.device_tokens // fleet.page_size,
            Tier.HOST: fleet.host_tokens // fleet.page_size,
        }
        self._early = EarlyBackups(docket, fleet, view, history)
        self.unheard = Unheard(docket)
        self._hits: Counter[int] = Counter()  # completed requests over a block while it was on device
        self._gone: dict[int, int] = {}  # block: number of the newest request when it left the device
        self._newest: tuple[int, tuple[int, ...]] = (0, ())

    def completed(self, hashes: tuple[int, ...], began: int, lone: bool) -> None:
        """A request has inserted these blocks; those that left the device meanwhile may have come back since
        without being counted (a chunk of an aborted request). `lone`: it ran from rest, and nothing else."""
        self._hits.update(h for h in hashes if self._gone.get(h, 0) < began)
        self._newest = (began, hashes if lone else ())

    def follow(self, event: KvEvent) -> None:
        """An event of the worker."""
        self._early.follow(event)
        self.unheard.follow(event)
        if isinstance(event, BlockRemoved) and event.tier is Tier.DEVICE:
            for h in event.hashes:
                self._hits.pop(h, None)
                self._gone[h] = self._history.number

    def clear(self) -> None:
        """The worker is empty."""
        self._hits.clear()
        self._gone.clear()
        self._early.clear()
        self.unheard.clear()

    def check(self, operation: str, just_flushed: bool, spare: int = 0) -> None:
        """Everything that can be asked at rest. `spare`: stored blocks that need no explanation (O4)."""
        self._gone.clear()  # no request is under way
        self._capacity(operation)
        self._early.check(operation)
        self.unheard.check()
        self._explained(operation, spare)
        if just_flushed:
            self._empty(operation)
        if not self._storage:
            self._backup(operation)

    def _explained(self, operation: str, spare: int) -> None:
        """At most fl(P+n) pages of a request are stored (6.2-2, O4)."""
        if not self._fleet.starts_empty:
            return
        strangers = [h for h in self._stream.strangers if not self._view.owners(h)]
        self._stream.strangers.clear()
        self._docket.check(
            len(strangers) <= spare,
            "unexplained-store",
            operation,
            f"{len(strangers)} blocks were stored that are pages of no prompt and no answer; at most {spare} "
            "may be, of requests without outputs beside a decode",
            facts={"blocks": len(strangers), "spare": spare},
        )

    def _capacity(self, operation: str) -> None:
        for tier, most in self._pages.items():
            held = self._ledger.tier_copies(tier)
            self._docket.check(
                held <= most,
                "over-capacity",
                operation,
                f"events claim {held} {tier} blocks; the pool has {most} pages",
                facts={"tier": str(tier), "claimed": held, "capacity": most},
            )

    def _empty(self, operation: str) -> None:
        left = sum(self._ledger.tier_copies(tier) for tier in self._pages)
        self._docket.check(
            left == 0,
            "clear-scope",
            operation,
            f"after a flush, at rest, events still claim {left} blocks",
            facts={"left": left},
        )

    # backup ----------------------------------------------------------------------------------------
    def _backup(self, operation: str) -> None:
        missing = self._missing()
        if missing is None:
            return
        self._docket.check(
            not missing,
            "no-backup",
            operation,
            f"{len(missing)} pages without a host copy at rest under {self._fleet.policy}, "
            f"block {missing[0] if missing else 0} among them",
            facts={"policy": self._fleet.policy, "blocks": len(missing)},
        )

    def _missing(self) -> list[int] | None:
        """Blocks that must have a host copy by now; None when the policy says nothing here."""
        if self._pages[Tier.HOST] < self._pages[Tier.DEVICE]:
            return self._missing_of_newest()
        if self._fleet.policy == "write_back":
            full = self._history.distinct > self._pages[Tier.HOST] or not self._fleet.starts_empty
            if full:  # a victim may be dropped for want of room
                return None
            return [h for h in self._stream.dropped if self._certain(h, 1)]
        least = 1 if self._fleet.policy == "write_through" else 2
        return [h for h in self._stream.uncopied if self._certain(h, least)]

    def _missing_of_newest(self) -> list[int] | None:
        """Host below device: copies of what was used before give way to those of the newest request (T10)."""
        number, hashes = self._newest
        fits = self._history.longest <= self._pages[Tier.HOST]
        if self._fleet.policy != "write_through" or number != self._history.number or not hashes or not fits:
            return None
        return [h for h in hashes if h in self._stream.uncopied and self._certain(h, 1)]

    def _certain(self, h: int, least: int) -> bool:
        return self._hits[h] >= least and not self._view.ambiguous(h)

    # gauges ----------------------------------------------------------------------------------------
    def gauges(self, metrics: dict[str, float], operation: str) -> None:
        """Levels at rest, refreshed at once; what the worker does not report is not judged."""
        self._nothing("num_running_reqs", metrics.get("sglang:num_running_reqs"), operation)
        self._nothing("num_queue_reqs", metrics.get("sglang:num_queue_reqs"), operation)
        free, evictable = metrics.get("sglang:kv_available_tokens"), metrics.get("sglang:kv_evictable_tokens")
        if free is not None and evictable is not None:
            self._nothing("locked device tokens", self._fleet.device_tokens - free - evictable, operation)
        used = metrics.get("sglang:hicache_host_used_tokens")
        self._levels(free, evictable, used, operation)
        if used is not None:
            claimed = self._ledger.tier_copies(Tier.HOST) * self._fleet.page_size
            self._nothing("host tokens used beyond those that events claim", used - claimed, operation)

    def _levels(
        self, free: float | None, evictable: float | None, used: float | None, operation: str
    ) -> None:
        """0 <= each level <= its pool; what is free and what is cached are different tokens."""
        cached = None if free is None or evictable is None else free + evictable
        device, host = self._fleet.device_tokens, self._fleet.host_tokens
        levels = (
            ("device tokens free", free, device),
            ("device tokens free or evictable", cached, device),
            ("host tokens used", used, host),
        )
        known = [(what, value, pool) for what, value, pool in levels if value is not None]
        wrong = [f"{what}: {value:g} of {pool}" for what, value, pool in known if not 0 <= value <= pool]
        if known:
            self._docket.check(not wrong, "pool-levels", operation, "; ".join(wrong))

    def _nothing(self, what: str, value: float | None, operation: str) -> None:
        if value is not None:
            message = f"{what}: {value:g} at rest; expected 0"
            facts: Facts = {"gauge": what, "value": value}
            self._docket.check(value == 0, "leak-at-rest", operation, message, facts=facts)

"""Oracles over the storage tier, one request at a time at rest (reference 5.8, the table at its end).

Under write_through every host copy is written to storage, and a prefetch brings back what lies behind the
pages that device and host hold, if it is worth it. Storage outlives flushes and, in a folder, restarts.
"""

from __future__ import annotations

from dataclasses import dataclass

from tierfuzz.events import AllBlocksCleared, Batch, BlockRemoved, BlockStored, KvEvent, Tier
from tierfuzz.eventview import PrefixView
from tierfuzz.forecast.history import History
from tierfuzz.observation import TierSplit
from tierfuzz.oracles.docket import Docket
from tierfuzz.program import FleetConfig


@dataclass(frozen=True)
class StorageForecast:
    """Pages behind the held ones: `own` were written for this namespace, `any_owner` for some namespace;
    `sure` says whether exactly `own` must come (False: at most). `held`: pages that were held before;
    `claimed`: pages that events say are in storage and that must come, 0 where that cannot be said."""

    own: int
    any_owner: int
    sure: bool
    held: int = 0
    claimed: int = 0
    namespaced: bool = False


class StorageWatch:
    """What storage holds by the events of one worker; inert where no storage is configured."""

    def __init__(self, docket: Docket, fleet: FleetConfig, history: History) -> None:
        self._docket = docket
        self._fleet = fleet
        self._history = history
        self.attached = fleet.storage_threshold > 0
        self.written: set[int] = set()
        self.claimed: set[int] = set()  # stored by events; not every engine publishes those
        self._removed: set[int] = set()  # host copies that left since the last forecast
        self.foreseeable = fleet.policy == "write_through" and fleet.starts_empty

    @property
    def configured(self) -> bool:
        """Storage is, or was at some time, part of this worker."""
        return self._fleet.storage_threshold > 0

    def apply(self, batch: Batch) -> None:
        """A host copy that has landed is written to storage."""
        for event in batch.events:
            if isinstance(event, BlockRemoved) and event.tier is Tier.HOST:
                self._removed.update(event.hashes)
            if self.attached and isinstance(event, BlockStored) and event.tier is Tier.HOST:
                self.written.update(event.hashes)
            self._claim(event)

    def _claim(self, event: KvEvent) -> None:
        if isinstance(event, AllBlocksCleared):
            self.claimed.clear()
        elif event.tier is Tier.STORAGE:
            stored = isinstance(event, BlockStored)
            (self.claimed.update if stored else self.claimed.difference_update)(event.hashes)

    def clear(self) -> None:
        """Storage was emptied."""
        self.written.clear()
        self.claimed.clear()
        self._history.ever = set(self._history.begun)
        self._history.blocks = {h for _, h in self._history.begun}

    def restarted(self) -> None:
        """A new process has storage attached as at first, whatever was done to the old one."""
        self.attached = self.configured

    def forecast(
        self, namespace: str, usable: tuple[int, ...], view: PrefixView | None
    ) -> StorageForecast | None:
        """Before a request at rest; None when nothing can be said of storage."""
        self._removed.clear()
        if not self.configured or view is None or view.total.low != view.total.high:
            return None
        rest = usable[view.total.low :]
        if not self.attached:
            return StorageForecast(0, 0, True)
        own = _leading([h in self.written and (namespace, h) in self._history.ever for h in rest])
        any_owner = _leading([h in self.written for h in rest])
        claimed = _leading([h in self.claimed and self._sole(namespace, h) for h in rest])
        return StorageForecast(
            own if self._worth(own) else 0,
            any_owner,
            self._certain(own),
            view.total.low,
            claimed if self._worth(claimed) and self._certain(claimed) else 0,
            bool(namespace),
        )

    def _worth(self, pages: int) -> bool:
        return pages * self._fleet.page_size >= self._fleet.storage_threshold

    def _sole(self, namespace: str, h: int) -> bool:
        """Nobody else can have written this block: a claim does not say whose copy it is (B6c)."""
        return {owner for owner, other in self._history.ever if other == h} == {namespace}

    def _certain(self, pages: int) -> bool:
        """A prefetch finds host room and an anchor: write_through, and much more host than device."""
        device, host = self._fleet.device_tokens, self._fleet.host_tokens
        return self.foreseeable and device + pages * self._fleet.page_size <= host

    def refetched(self, usable: tuple[int, ...], forecast: StorageForecast) -> int:
        """At most so many pages that were held came from storage: a prefetch that has to make room may evict
        them and fetch them again (B18)."""
        return sum(h in self._removed for h in usable[: forecast.held])

    def check(self, operation: str, forecast: StorageForecast, split: TierSplit, refetched: int) -> None:
        """Compare the storage part of a reply, at rest: every event is in hand."""
        page, threshold = self._fleet.page_size, self._fleet.storage_threshold
        seen = split.storage // page
        facts: dict[str, str | int | float | bool | None] = {
            "storage_pages": seen,
            "own": forecast.own,
            "any_owner": forecast.any_owner,
            "threshold": threshold,
            "held": forecast.held,
            "namespaced": forecast.namespaced,
        }
        text = f"{seen} pages from storage; {forecast.own} written for this namespace lie behind what is held"
        if forecast.sure:
            self._docket.check(seen >= forecast.own, "storage-miss", operation, text, facts=facts)
        if forecast.claimed:
            self._docket.check(
                seen >= forecast.claimed,
                "storage-claim",
                operation,
                f"{seen} pages from storage; events claim {forecast.claimed} there behind what is held",
                facts={**facts, "claimed": forecast.claimed},
            )
        foreign = forecast.own < seen <= forecast.any_owner and seen * page >= threshold
        self._docket.check(
            not foreign, "namespace-leak", operation, f"{text}, the others for another", facts=facts
        )
        most = max(forecast.own, forecast.any_owner) + refetched
        self._docket.check(seen <= most, "storage-phantom", operation, text, facts=facts)
        self._docket.check(
            seen == 0 or seen * page >= threshold,
            "storage-below-threshold",
            operation,
            f"{seen} pages from storage are less than the threshold of {threshold} tokens",
            facts=facts,
        )


def _leading(flags: list[bool]) -> int:
    return flags.index(False) if False in flags else len(flags)

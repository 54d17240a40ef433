"""Level one of the forecast: sound for any LRU engine of whole nodes, every policy (reference 6.2).

Lower bounds need the preconditions Q (page size 10 or more, host pool not below the device pool) and rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from tierfuzz.events import Tier
from tierfuzz.forecast.history import History, Root, leading_in
from tierfuzz.program import FleetConfig

LEAST_PAGE_SIZE = 10
Chance = Literal["must", "may", "must not"]


@dataclass(frozen=True)
class Forecast:
    """Pages of one prompt. `limit`: a match may use so many; `most`: never more than this is cached; `held`:
    at least this is, in some tier; `host_only`: at least this is served from host and nothing from device
    (0: no such claim). `reasons`: the operations that the claims follow from. `elsewhere`: leading pages that
    some namespace has computed since the worker started, flushes or not."""

    limit: int
    most: int
    held: int
    host_only: int
    reasons: tuple[str, ...] = ()
    elsewhere: int = field(default=0, compare=False)

    def chance(self, tier: Tier, page: int) -> Chance:
        """Whether a page (from 0) of the prompt is served from a tier."""
        if page >= self.most:
            return "must not"
        if page < self.host_only:
            return "must" if tier is Tier.HOST else "must not"
        return "must not" if self.host_only and tier is Tier.DEVICE else "may"

    def explain(self) -> str:
        """All claims and what they follow from, a line each."""
        lines = [f"at most {self.most} of {self.limit} pages can be cached"]
        lines += [f"at least {self.held} pages must still be held"] if self.held else []
        lines += [f"{self.host_only} pages must come from host, none from device"] if self.host_only else []
        return "\n  because ".join(["; ".join(lines), *self.reasons])


class Contract:
    """Forecasts for one worker from its history."""

    def __init__(self, fleet: FleetConfig, history: History) -> None:
        self._policy = fleet.policy
        self._page = fleet.page_size
        self._device = fleet.device_tokens // fleet.page_size
        self._host = fleet.host_tokens // fleet.page_size
        self._storage = fleet.storage_threshold > 0  # prefetches take host pages as nobody can foresee
        self._starts_empty = fleet.starts_empty
        self.history = history

    @property
    def claims(self) -> bool:
        """The preconditions of the lower bounds hold for this fleet."""
        return self._page >= LEAST_PAGE_SIZE and self._host >= self._device and not self._storage

    @property
    def never_full(self) -> bool:
        """All pages since the worker was empty fit on host: nothing has ever had to leave it (6.2-3)."""
        return self.claims and self._starts_empty and self.history.distinct <= self._host

    def limit(self, tokens: int, logprob_start: int | None) -> int:
        """Pages that a match may use: the last token is always computed, logprobs cap it (5.1)."""
        last = tokens - 1
        if logprob_start is not None and logprob_start >= 0:
            last = min(last, logprob_start)
        return max(0, last) // self._page

    def forecast(
        self,
        namespace: str,
        hashes: tuple[int, ...],
        tokens: int,
        logprob_start: int | None,
        quiet: bool,
        announced: int,
    ) -> Forecast:
        """Before a request is sent. `quiet`: at rest, and nothing else runs; `announced`: leading pages that
        events say are on host (only selective needs them)."""
        limit = self.limit(tokens, logprob_start)
        usable = hashes[:limit]
        made = self._claims(namespace, hashes, usable, quiet, announced)
        elsewhere = next((i for i, h in enumerate(usable) if h not in self.history.blocks), len(usable))
        return replace(made, elsewhere=elsewhere)

    def _claims(
        self,
        namespace: str,
        hashes: tuple[int, ...],
        usable: tuple[int, ...],
        quiet: bool,
        announced: int,
    ) -> Forecast:
        limit = len(usable)
        most = self.history.most(namespace, usable)
        root = self.history.roots.get((namespace, hashes[0])) if hashes else None
        if root is None or not quiet or not self.claims:
            return Forecast(limit, most, 0, 0)
        held = leading_in(self.history.inserted, namespace, usable)
        if self._policy == "write_through_selective":
            held = min(held, announced)
        held = self._kept(root, namespace, hashes, held)
        if not held:
            return Forecast(limit, most, 0, 0)
        off_device = self._forced_off(root)
        reasons = self._reasons(namespace, hashes, root, held, off_device)
        return Forecast(limit, most, held, held if off_device else 0, reasons)

    @property
    def _budget(self) -> int:
        """Pages that may be used after a page before it can have to leave the host.

        A host eviction takes the oldest first, in whole nodes, and goes on until the node to be copied fits:
        it removes at most one node too many. Under write_back the victims of one device eviction, whose size
        is what the requests of a batch need, hold host pages too although they are older (reference 4).
        """
        return self._host - self.history.longest - self.history.widest - self.history.untold

    def _kept(self, root: Root, namespace: str, hashes: tuple[int, ...], inserted: int) -> int:
        """Leading pages since whose use too few others were used for host eviction to reach them (6.2-3)."""
        if root.rested is None:
            return 0
        if self.never_full:
            return inserted
        for held in range(inserted, 0, -1):
            used = self.history.used[(namespace, hashes[held - 1])]
            if self.history.newer_pages(used, self._host) <= self._budget:
                return held
        return 0

    def _forced_off(self, root: Root) -> bool:
        """So many pages came in since that LRU has taken the whole branch off the device (6.2-4)."""
        inserted = self.history.inserted_after(root)
        return inserted is not None and inserted >= self._device

    def _reasons(
        self, namespace: str, hashes: tuple[int, ...], root: Root, held: int, off_device: bool
    ) -> tuple[str, ...]:
        page = (namespace, hashes[held - 1])
        reasons = [f"pages 0..{held - 1} were inserted by {self.history.inserted[page]} and earlier"]
        if self.never_full:
            reasons.append(
                f"{self.history.distinct} distinct pages were computed since the last flush; "
                f"the host pool has {self._host}, so none had to leave it"
            )
        else:
            newer = self.history.newer_pages(self.history.used[page], self._host)
            reasons.append(
                f"at most {newer} pages were used since; the host pool has {self._host}, of which "
                f"{self._host - self._budget} are kept as slack for whole nodes"
            )
        if off_device:
            reasons.append(
                f"{self.history.inserted_after(root)} other pages were inserted since rest after "
                f"{root.operation}; the device pool has {self._device}"
            )
        return tuple(reasons)

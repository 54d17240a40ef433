"""Level one of the forecast: sound for any LRU engine of whole nodes, every policy (reference 6.2).

Lower bounds need the preconditions Q (page size 10 or more, host pool not below the device pool) and rest.
"""

from __future__ import annotations

from dataclasses import dataclass

from tierfuzz.forecast.history import History, Root, leading_in
from tierfuzz.program import FleetConfig

SLACK_NODES = 4  # victims are whole nodes and may be asked for in full (E4); staged ones cannot go (4)
LEAST_PAGE_SIZE = 10


@dataclass(frozen=True)
class Forecast:
    """Pages of one prompt. `most`: never more than this is cached; `held`: at least this is, in some tier;
    `host_only`: at least this is served from host and nothing from device (0: no such claim)."""

    limit: int
    most: int
    held: int
    host_only: int
    reasons: tuple[str, ...] = ()


class Contract:
    """Forecasts for one worker from its history."""

    def __init__(self, fleet: FleetConfig, history: History) -> None:
        self._policy = fleet.policy
        self._page = fleet.page_size
        self._device = fleet.device_tokens // fleet.page_size
        self._host = fleet.host_tokens // fleet.page_size
        self._storage = fleet.storage_threshold > 0  # prefetches take host pages as nobody can foresee
        self.history = history

    @property
    def claims(self) -> bool:
        """The preconditions of the lower bounds hold for this fleet."""
        return self._page >= LEAST_PAGE_SIZE and self._host >= self._device and not self._storage

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
        most = leading_in(self.history.begun, namespace, hashes[:limit])
        root = self.history.roots.get((namespace, hashes[0])) if hashes else None
        if root is None or not quiet or not self.claims:
            return Forecast(limit, most, 0, 0)
        held = leading_in(self.history.inserted, namespace, hashes[:limit])
        if self._policy == "write_through_selective":
            held = min(held, announced)
        held = self._kept(root, namespace, hashes, held)
        if not held:
            return Forecast(limit, most, 0, 0)
        off_device = self._forced_off(root)
        reasons = self._reasons(namespace, hashes, root, held, off_device)
        return Forecast(limit, most, held, held if off_device else 0, reasons)

    def _kept(self, root: Root, namespace: str, hashes: tuple[int, ...], inserted: int) -> int:
        """Leading pages since whose use too few others were used for host eviction to reach them (6.2-3)."""
        if root.rested is None:
            return 0
        budget = self._host - SLACK_NODES * self.history.longest
        for held in range(inserted, 0, -1):
            used = self.history.used[(namespace, hashes[held - 1])]
            if self.history.newer_pages(used, self._host) <= budget:
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
        newer = self.history.newer_pages(self.history.used[page], self._host)
        reasons = [
            f"pages 0..{held - 1} were inserted by {self.history.inserted[page]} and earlier",
            f"at most {newer} pages were used since; the host pool has {self._host}, "
            f"less {SLACK_NODES} nodes of at most {self.history.longest} pages",
        ]
        if off_device:
            reasons.append(
                f"{self.history.inserted_after(root)} other pages were inserted since rest after "
                f"{root.operation}; the device pool has {self._device}"
            )
        return tuple(reasons)

"""write_through_selective copies a page when a second request comes to it, not before (reference 4)."""

from __future__ import annotations

from tierfuzz.events import BlockStored, KvEvent, Tier
from tierfuzz.eventview import EventView
from tierfuzz.forecast.history import History
from tierfuzz.oracles.docket import Docket
from tierfuzz.program import FleetConfig

REQUESTS = 2


class EarlyBackups:
    """Asked at rest: only then every answer, and so every page that a request came to, is known."""

    def __init__(self, docket: Docket, fleet: FleetConfig, view: EventView, history: History) -> None:
        self._docket = docket
        self._view = view
        self._history = history
        self._asked = fleet.policy == "write_through_selective" and not fleet.storage_threshold
        self._copied: set[int] = set()

    def follow(self, event: KvEvent) -> None:
        """An event of the worker."""
        if self._asked and isinstance(event, BlockStored) and event.tier is Tier.HOST:
            self._copied.update(event.hashes)

    def clear(self) -> None:
        """The worker is empty."""
        self._copied.clear()

    def check(self, operation: str) -> None:
        """Every page that was copied since rest was last proved."""
        copied = [h for h in self._copied if self._view.owners(h)]
        self._copied.clear()
        if not copied:
            return
        early = [h for h in copied if self._history.uses[h] < REQUESTS]
        self._docket.check(
            not early,
            "early-backup",
            operation,
            f"{len(early)} pages were copied to host after one request under write_through_selective, "
            f"block {early[0] if early else 0} among them",
            facts={"blocks": len(early)},
        )

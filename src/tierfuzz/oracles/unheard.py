"""Pages that finished requests have put into the tree, and that no event has ever named (T26)."""

from __future__ import annotations

from tierfuzz.events import BlockRemoved, BlockStored, KvEvent
from tierfuzz.oracles.docket import Docket


class Unheard:
    """Every page of a finished request is announced when it enters the tree, whatever becomes of it later."""

    def __init__(self, docket: Docket) -> None:
        self._docket = docket
        self._named: set[int] = set()  # since the worker was empty
        self._due: dict[int, str] = {}  # block: the request that inserted it last

    def completed(self, hashes: tuple[int, ...], operation: str) -> None:
        """These pages are in the tree now, or were (6.2-2)."""
        self._due.update(dict.fromkeys(hashes, operation))

    def follow(self, event: KvEvent) -> None:
        """An event names blocks."""
        if isinstance(event, BlockStored | BlockRemoved):
            self._named.update(event.hashes)

    def clear(self) -> None:
        """The worker is empty."""
        self._named.clear()
        self._due.clear()

    def check(self) -> None:
        """At rest every event is in hand. Holds are not counted: O3 counts one a request."""
        due, self._due = self._due, {}
        silent = [h for h in due if h not in self._named]
        if not silent:
            return
        self._docket.violation(
            "insert-bound",
            due[silent[0]],
            f"{len(silent)} of {len(due)} pages of finished requests were never named by any event",
            facts={"missing": len(silent), "sure": len(due)},
        )

"""A listener: one journal for each policy of a campaign."""

from __future__ import annotations

from pathlib import Path

from tierfuzz.journal import Journal
from tierfuzz.runevents import RunEnded, RunEvent, RunStarted


class PolicyJournals:
    """Writes `journal-<policy>.jsonl` files into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._journal: Journal | None = None

    def on_event(self, event: RunEvent) -> None:
        """Open with a run, close with it, write what comes between."""
        if isinstance(event, RunStarted):
            self.close()  # a run that broke has no end
            self._journal = Journal(self._folder / f"journal-{event.fleet.policy}.jsonl")
        if self._journal is not None:
            self._journal.on_event(event)
        if isinstance(event, RunEnded):
            self.close()

    def close(self) -> None:
        """Close the journal that is open, if there is one."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

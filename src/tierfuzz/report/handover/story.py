"""A run as chapters: one an operation, and one for what came after the last."""

from __future__ import annotations

from dataclasses import dataclass, field

from tierfuzz.evidence import Evidence
from tierfuzz.observation import Observation
from tierfuzz.program import Operation
from tierfuzz.runevents import OperationDone, OperationStarted, RequestSent, RunEvent, VerdictGiven
from tierfuzz.verdict import Verdict


@dataclass
class Chapter:
    """What happened in one operation; `operation` is None for the end of the run."""

    operation: Operation | None
    events: list[RunEvent] = field(default_factory=list)

    @property
    def sent(self) -> list[RequestSent]:
        """Requests, in the order in which they were made."""
        return [event for event in self.events if isinstance(event, RequestSent)]

    @property
    def observations(self) -> list[Observation]:
        """What their clients saw."""
        done = [event for event in self.events if isinstance(event, OperationDone)]
        return [seen for event in done for seen in event.observations]

    @property
    def verdicts(self) -> list[Verdict]:
        """Violations and unknowns that were said in it."""
        return [event.verdict for event in self.events if isinstance(event, VerdictGiven)]


def chapters(evidence: Evidence) -> list[Chapter]:
    """The run in order; nothing is left out."""
    found: list[Chapter] = []
    inside = False
    for event in evidence.events:
        if isinstance(event, OperationStarted):
            found.append(Chapter(event.operation))
            inside = True
        elif not inside and (not found or found[-1].operation is not None):
            found.append(Chapter(None))
        found[-1].events.append(event)
        inside = inside and not isinstance(event, OperationDone)
    return found


def observed(evidence: Evidence) -> dict[str, Observation]:
    """Replies by request."""
    return {seen.operation: seen for chapter in chapters(evidence) for seen in chapter.observations}


def sent(evidence: Evidence) -> dict[str, RequestSent]:
    """Requests by their name, fillers too."""
    return {event.request.id: event for event in evidence.events if isinstance(event, RequestSent)}

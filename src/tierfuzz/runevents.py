"""What a run emits: typed events; every output (progress, journal, report) is a listener."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from tierfuzz.events import Batch
from tierfuzz.eventview import PrefixView
from tierfuzz.forecast.contract import Forecast
from tierfuzz.observation import Observation
from tierfuzz.program import FleetConfig, Generate, Operation
from tierfuzz.verdict import Verdict


class RunStarted(msgspec.Struct, frozen=True, tag="run_started"):
    """A campaign on one fleet begins."""

    fleet: FleetConfig
    max_examples: int


class CaseStarted(msgspec.Struct, frozen=True, tag="case_started"):
    """A case begins on empty workers; cases are numbered from 1."""

    number: int


class Emptied(msgspec.Struct, frozen=True, tag="emptied"):
    """Workers are empty and judges fresh: what follows does not depend on what came before.

    Cases begin with it, and so does every run of a case again.
    """


class OperationStarted(msgspec.Struct, frozen=True, tag="operation_started"):
    """An operation is about to be carried out; nothing of it has been sent yet."""

    operation: Operation


class RequestSent(msgspec.Struct, frozen=True, tag="request_sent"):
    """A request of the operation under way is about to be sent: its token ids, and what is known of it.

    `view`: what events say of its pages, or None unless the worker is at rest and the request alone.
    """

    request: Generate
    tokens: tuple[int, ...]
    forecast: Forecast
    view: PrefixView | None


class BatchesSeen(msgspec.Struct, frozen=True, tag="batches_seen"):
    """Event batches of a worker have arrived, in the order of their numbers."""

    worker: int
    batches: tuple[Batch, ...]


class RestSought(msgspec.Struct, frozen=True, tag="rest_sought"):
    """A worker was asked for rest: proved, or the reason why it was not."""

    worker: int
    at_rest: bool
    reason: str


class OperationDone(msgspec.Struct, frozen=True, tag="operation_done"):
    """An operation has been carried out; `requests` is how many were sent for it."""

    operation: Operation
    requests: int
    observations: tuple[Observation, ...]


class VerdictGiven(msgspec.Struct, frozen=True, tag="verdict_given"):
    """A violation or an unknown."""

    verdict: Verdict


class CaseEnded(msgspec.Struct, frozen=True, tag="case_ended"):
    """A case is over: checks that held by oracle, and what was reached."""

    number: int
    held: dict[str, int]
    reach: dict[str, int]


class ShrinkStep(msgspec.Struct, frozen=True, tag="shrink_step"):
    """A failing program is being shrunk: the pass, its operations at first and now, runs so far."""

    name: str
    was: int
    now: int
    runs: int


class RunEnded(msgspec.Struct, frozen=True, tag="run_ended"):
    """The campaign on this fleet is over; `interrupted` by Ctrl-C."""

    interrupted: bool


RunEvent = (
    RunStarted
    | CaseStarted
    | Emptied
    | OperationStarted
    | RequestSent
    | BatchesSeen
    | RestSought
    | OperationDone
    | VerdictGiven
    | CaseEnded
    | ShrinkStep
    | RunEnded
)


class Listener(Protocol):
    """Anything that wants to know."""

    def on_event(self, event: RunEvent) -> None:
        """Called in order; must not block for long."""


class Dispatcher:
    """Hands events to listeners, in order, and keeps them apart.

    A listener that raises is told nothing more, and why stands in `broken`: an output with a hole in it
    would mislead, and no output may change what a run finds. KeyboardInterrupt passes: it ends the run.
    """

    def __init__(self, listeners: Sequence[Listener] = ()) -> None:
        self._listeners = list(listeners)
        self.broken: list[str] = []

    def add(self, listener: Listener) -> None:
        """One more listener, from now on."""
        self._listeners.append(listener)

    def emit(self, event: RunEvent) -> None:
        """Tell everybody."""
        for listener in tuple(self._listeners):
            try:
                listener.on_event(event)
            except Exception as error:  # whatever an output does wrong is its own trouble
                self._listeners.remove(listener)
                what = f"{type(error).__name__}: {error}"
                self.broken.append(f"{type(listener).__name__} failed at {type(event).__name__}: {what}")

"""Events go to every listener in order; a listener that breaks neither stops the run nor the others."""

from __future__ import annotations

import pytest

from tierfuzz.runevents import CaseStarted, Dispatcher, RunEnded, RunEvent

EVENTS: tuple[RunEvent, ...] = (CaseStarted(1), CaseStarted(2), RunEnded(False))


class Recorder:
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[RunEvent] = []

    def on_event(self, event: RunEvent) -> None:
        """Keep it."""
        self.heard.append(event)


class Breaking(Recorder):
    """Raises at the second case."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def on_event(self, event: RunEvent) -> None:
        """Keep it, or raise."""
        super().on_event(event)
        if event == CaseStarted(2):
            raise self.error


def test_listeners_hear_everything_in_order() -> None:
    first, late = Recorder(), Recorder()
    dispatcher = Dispatcher([first])
    dispatcher.emit(EVENTS[0])
    dispatcher.add(late)
    for event in EVENTS[1:]:
        dispatcher.emit(event)
    assert first.heard == list(EVENTS)
    assert late.heard == list(EVENTS[1:])
    assert dispatcher.broken == []


def test_a_listener_that_breaks_is_left_out_and_named() -> None:
    breaking, after = Breaking(OSError("disk full")), Recorder()
    dispatcher = Dispatcher([breaking, after])
    for event in EVENTS:
        dispatcher.emit(event)
    assert breaking.heard == list(EVENTS[:2]), "an output with a hole in it would mislead"
    assert after.heard == list(EVENTS)
    assert dispatcher.broken == ["Breaking failed at CaseStarted: OSError: disk full"]


def test_ctrl_c_inside_a_listener_ends_the_run() -> None:
    dispatcher = Dispatcher([Breaking(KeyboardInterrupt())])
    dispatcher.emit(EVENTS[0])
    with pytest.raises(KeyboardInterrupt):
        dispatcher.emit(EVENTS[1])

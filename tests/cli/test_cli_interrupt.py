"""Ctrl-C: raised at once, raised again when it got lost, and given back."""

from __future__ import annotations

import gc
import signal

import pytest

from tierfuzz.cli.interrupt import Interrupt
from tierfuzz.program import FleetConfig, Idle
from tierfuzz.runevents import CaseStarted, OperationDone, OperationStarted, RunEnded, RunEvent, RunStarted

IDLE = Idle("op0", 0)


def lose_an_interrupt() -> None:
    """Let SIGINT come inside a callback of the garbage collector, as it came in a long campaign."""

    def callback(*_: object) -> None:
        gc.callbacks.remove(callback)
        signal.raise_signal(signal.SIGINT)

    gc.callbacks.append(callback)
    gc.collect()


def test_it_is_raised_at_once() -> None:
    with Interrupt(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("event", [CaseStarted(2), OperationStarted(IDLE)])
def test_one_that_got_lost_is_raised_before_anything_new_begins(event: RunEvent) -> None:
    with Interrupt() as interrupt:
        interrupt.on_event(event)
        lose_an_interrupt()
        with pytest.raises(KeyboardInterrupt):
            interrupt.on_event(event)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("event", [RunStarted(FleetConfig(), 1), OperationDone(IDLE, 0, ()), RunEnded(True)])
def test_what_ends_may_end(event: RunEvent) -> None:
    with Interrupt() as interrupt:
        lose_an_interrupt()
        interrupt.on_event(event)


def test_the_handler_from_before_is_given_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupt():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before

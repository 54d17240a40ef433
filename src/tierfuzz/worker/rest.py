"""At rest, found by observation with a bound: the scheduler says idle, and every event is in hand (6.4)."""

from __future__ import annotations

from dataclasses import dataclass

from tierfuzz.clock import Clock
from tierfuzz.worker.http import WorkerClient
from tierfuzz.worker.subscriber import EventSubscriber

FIRST_WAIT_S = 0.0005
LONGEST_WAIT_S = 0.02


@dataclass(frozen=True)
class RestResult:
    """Whether rest was proved; `reason` says why not; `last_seq` is the newest batch in hand."""

    at_rest: bool
    reason: str
    last_seq: int


def settle(
    client: WorkerClient,
    subscriber: EventSubscriber,
    clock: Clock,
    bound_s: float,
    confirmations: int = 1,
) -> RestResult:
    """Wait for rest, at most `bound_s` seconds.

    `confirmations`: idle answers in a row that an engine needs before its last events are published; with
    more than one, the replay is also read until two readings agree, since a publisher thread may lag.
    """
    deadline = clock.monotonic() + bound_s
    wait, seen = FIRST_WAIT_S, 0
    while seen < confirmations:
        idle = client.idle()
        if idle is None:
            return RestResult(False, "the worker has no idle probe", subscriber.last_seq)
        seen = seen + 1 if idle else 0
        if idle:
            continue
        if clock.monotonic() >= deadline:
            return RestResult(False, f"the scheduler was not idle within {bound_s} s", subscriber.last_seq)
        clock.sleep(wait)
        wait = min(2 * wait, LONGEST_WAIT_S)
    return _all_events(subscriber, clock, deadline, confirmations)


def _all_events(subscriber: EventSubscriber, clock: Clock, deadline: float, confirmations: int) -> RestResult:
    before: int | None = None
    while True:
        last = subscriber.sync(max(0.05, deadline - clock.monotonic()))
        if last is None:
            return RestResult(False, "the worker did not say which events it has published", -1)
        if confirmations == 1 or last == before:
            return RestResult(True, "", last)
        before = last

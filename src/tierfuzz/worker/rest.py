"""At rest, found by observation with a bound: the scheduler says idle, and every event is in hand (6.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tierfuzz.clock import Clock

FIRST_WAIT_S = 0.0005
LONGEST_WAIT_S = 0.02
BUSY_GAUGES = ("sglang:num_running_reqs", "sglang:num_queue_reqs")
Expected = Callable[[], bool]


class Asked(Protocol):
    """The part of a WorkerClient that is asked for signs of rest."""

    def idle(self, timeout_s: float | None = None) -> bool | None:
        """Fully idle; None when it cannot be asked."""

    def metrics(self) -> dict[str, float]:
        """Metrics by name."""


class Heard(Protocol):
    """The part of an EventSubscriber that says what has been published."""

    @property
    def last_seq(self) -> int:
        """Newest batch in hand, -1 before the first."""

    def sync(self, timeout_s: float) -> int | None:
        """Newest batch published; None when the worker did not say."""


@dataclass(frozen=True)
class RestResult:
    """Whether rest was proved; `reason` says why not; `last_seq` is the newest batch in hand."""

    at_rest: bool
    reason: str
    last_seq: int


def settle(
    client: Asked,
    subscriber: Heard,
    clock: Clock,
    bound_s: float,
    confirmations: int = 1,
    *,
    quiet_s: float = 0.0,
    expected: Expected | None = None,
    busy_gauges: Sequence[str] = BUSY_GAUGES,
) -> RestResult:
    """Wait for rest, at most `bound_s` seconds (one exchange may end a little later); RequestFailed passes.

    `confirmations`: idle answers in a row that an engine needs. With one, its scheduler publishes before it
    says idle, and one reading of the replay brings everything; with more, its publisher may lag, and readings
    `quiet_s` seconds apart are made until two agree.
    A worker without an idle probe is at rest when `busy_gauges` are 0 and `expected` says that the events one
    waits for have come (it may drain the subscriber); without `expected` nothing can be proved.
    """
    search = _Search(client, subscriber, clock, clock.monotonic() + bound_s)
    reason = search.idle(confirmations, expected, busy_gauges)
    if not reason:
        reason = search.events(1 if confirmations == 1 and expected is None else 2, quiet_s)
    return RestResult(not reason, reason, subscriber.last_seq)


class _Search:
    """Each step returns "" or the reason for which rest is not proved."""

    def __init__(self, client: Asked, subscriber: Heard, clock: Clock, deadline: float) -> None:
        self._client = client
        self._subscriber = subscriber
        self._clock = clock
        self._deadline = deadline
        self._wait = FIRST_WAIT_S

    def idle(self, confirmations: int, expected: Expected | None, busy_gauges: Sequence[str]) -> str:
        """Until the worker is idle."""
        seen = 0
        while seen < confirmations:
            idle = self._client.idle(max(1.0, self._left()))
            if idle is None:
                return self._quiet(expected, busy_gauges)
            seen = seen + 1 if idle else 0
            if not idle and not self._pause():
                return "the scheduler was not idle within the bound"
        return ""

    def _quiet(self, expected: Expected | None, busy_gauges: Sequence[str]) -> str:
        """Until gauges and expected content say so, for a worker that cannot be asked."""
        if expected is None:
            return "the worker has no idle probe, and no content was expected of it"
        while True:
            reason = self._noise(busy_gauges) or ("" if expected() else "the expected events have not come")
            if not reason or not self._pause():
                return reason

    def _noise(self, busy_gauges: Sequence[str]) -> str:
        metrics = self._client.metrics()
        missing = [name for name in busy_gauges if name not in metrics]
        if missing:
            return f"no idle probe, and /metrics has no {missing[0]}"
        busy = [f"{name} is {metrics[name]:g}" for name in busy_gauges if metrics[name]]
        return ", ".join(busy)

    def events(self, syncs: int, quiet_s: float) -> str:
        """Until readings of the replay agree."""
        agreeing, before = 0, -2
        while agreeing < syncs:
            last = self._subscriber.sync(max(1.0, self._left()))
            if last is None:
                return "the worker did not say which events it has published"
            agreeing = agreeing + 1 if last == before else 1
            before = last
            if agreeing < syncs and not self._pause(quiet_s):
                return "events still came when the bound was reached"
        return ""

    def _left(self) -> float:
        return self._deadline - self._clock.monotonic()

    def _pause(self, least_s: float | None = None) -> bool:
        """Wait a little longer than the last time, or `least_s`; False when the bound is reached."""
        if self._left() <= 0:
            return False
        if least_s is None:
            self._clock.sleep(min(self._wait, self._left()))
            self._wait = min(2 * self._wait, LONGEST_WAIT_S)
        elif least_s > 0:
            self._clock.sleep(min(least_s, self._left()))
        return True

"""At rest: what is asked, how often, and what is answered when it cannot be proved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import pytest

from tierfuzz.clock import FakeClock
from tierfuzz.errors import RequestFailed
from tierfuzz.worker.rest import BUSY_GAUGES, RestResult, settle

T = TypeVar("T")
QUIET = dict.fromkeys(BUSY_GAUGES, 0.0)
BUSY = {BUSY_GAUGES[0]: 2.0, BUSY_GAUGES[1]: 0.0}


class Worker:
    """A client and a subscriber in one; each list of answers goes on with its last one."""

    def __init__(
        self,
        idle: Sequence[bool | None] = (True,),
        metrics: Sequence[dict[str, float]] = (QUIET,),
        syncs: Sequence[int | None] = (7,),
    ) -> None:
        self.asked: list[str] = []
        self.last_seq = -1
        self._idle, self._metrics, self._syncs = _onward(idle), _onward(metrics), _onward(syncs)

    def idle(self, timeout_s: float | None = None) -> bool | None:
        """The next answer of the probe."""
        assert timeout_s is None or timeout_s > 0
        self.asked.append("idle")
        return next(self._idle)

    def metrics(self) -> dict[str, float]:
        """The next metrics."""
        self.asked.append("metrics")
        return next(self._metrics)

    def sync(self, timeout_s: float) -> int | None:
        """The next reading of the replay."""
        assert timeout_s > 0
        self.asked.append("sync")
        last = next(self._syncs)
        self.last_seq = self.last_seq if last is None else last
        return last


def _onward(values: Sequence[T]) -> Iterator[T]:
    yield from values
    while True:
        yield values[-1]


@pytest.fixture
def clock() -> FakeClock:
    """Time that passes by sleeping only."""
    return FakeClock()


def test_one_idle_answer_and_one_reading_are_enough_where_the_engine_says_so(clock: FakeClock) -> None:
    worker = Worker()
    assert settle(worker, worker, clock, 5.0, 1) == RestResult(True, "", 7)
    assert worker.asked == ["idle", "sync"]
    assert clock.monotonic() == 0.0


def test_a_busy_worker_is_asked_again_with_growing_waits(clock: FakeClock) -> None:
    worker = Worker(idle=[False] * 9 + [True])
    assert settle(worker, worker, clock, 5.0, 1).at_rest
    assert worker.asked == ["idle"] * 10 + ["sync"]
    assert 0.0 < clock.monotonic() < 9 * 0.02


def test_confirmations_are_in_a_row_and_readings_have_to_agree(clock: FakeClock) -> None:
    worker = Worker(idle=[True, True, False, True, True, True], syncs=[5, 6, 8, 8, 9])
    assert settle(worker, worker, clock, 5.0, 3, quiet_s=0.1) == RestResult(True, "", 8)
    assert worker.asked == ["idle"] * 6 + ["sync"] * 4
    assert clock.monotonic() >= 0.3  # three pauses between four readings


def test_a_worker_that_never_rests_is_not_at_rest_after_the_bound(clock: FakeClock) -> None:
    worker = Worker(idle=[False])
    result = settle(worker, worker, clock, 2.0, 1)
    assert result == RestResult(False, "the scheduler was not idle within the bound", -1)
    assert clock.monotonic() == pytest.approx(2.0)


def test_a_worker_that_never_stops_publishing_is_not_at_rest(clock: FakeClock) -> None:
    worker = Worker(syncs=list(range(1000)))
    result = settle(worker, worker, clock, 2.0, 2, quiet_s=0.1)
    assert not result.at_rest
    assert "events still came" in result.reason
    assert result.last_seq == len([asked for asked in worker.asked if asked == "sync"]) - 1


def test_a_replay_that_does_not_answer_proves_nothing(clock: FakeClock) -> None:
    worker = Worker(syncs=[None])
    result = settle(worker, worker, clock, 2.0, 1)
    assert (result.at_rest, "did not say which events" in result.reason) == (False, True)


def test_a_worker_that_is_gone_is_not_a_worker_that_is_busy(clock: FakeClock) -> None:
    class Gone(Worker):
        def idle(self, timeout_s: float | None = None) -> bool | None:
            raise RequestFailed(f"unreachable, asked for {timeout_s} s")

    worker = Gone()
    with pytest.raises(RequestFailed, match="unreachable"):
        settle(worker, worker, clock, 2.0, 1)


# without an idle probe -----------------------------------------------------------------------------
def test_without_a_probe_and_without_expectations_nothing_is_proved(clock: FakeClock) -> None:
    worker = Worker(idle=[None])
    result = settle(worker, worker, clock, 2.0, 1)
    assert (result.at_rest, "no idle probe" in result.reason) == (False, True)
    assert worker.asked == ["idle"]


def test_without_a_probe_gauges_and_expected_events_are_waited_for(clock: FakeClock) -> None:
    worker, seen = Worker(idle=[None], metrics=[BUSY, BUSY, QUIET]), iter([False, True])
    result = settle(worker, worker, clock, 2.0, 1, expected=lambda: next(seen))
    assert result == RestResult(True, "", 7)
    assert worker.asked == ["idle", *["metrics"] * 4, "sync", "sync"]


@pytest.mark.parametrize(
    ("metrics", "expected", "told"),
    [
        (BUSY, True, "sglang:num_running_reqs is 2"),
        (QUIET, False, "the expected events have not come"),
        ({}, True, "/metrics has no sglang:num_running_reqs"),
    ],
)
def test_without_a_probe_the_reason_is_told_after_the_bound(
    clock: FakeClock, metrics: dict[str, float], expected: bool, told: str
) -> None:
    worker = Worker(idle=[None], metrics=[metrics])
    result = settle(worker, worker, clock, 2.0, 1, expected=lambda: expected)
    assert not result.at_rest
    assert told in result.reason
    assert clock.monotonic() == pytest.approx(2.0)


def test_other_engines_have_other_gauges(clock: FakeClock) -> None:
    worker = Worker(idle=[None], metrics=[{"vllm:num_requests_running": 0.0}])
    gauges = ("vllm:num_requests_running",)
    assert settle(worker, worker, clock, 2.0, expected=lambda: True, busy_gauges=gauges).at_rest

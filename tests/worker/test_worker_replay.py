"""The replay socket's patience: with every batch that comes, not with all of them together."""

from __future__ import annotations

import zmq
from publisher import publishing

from tierfuzz.clock import Clock
from tierfuzz.worker.replay import ReplayClient

PATIENCE_S = 2.0


class HastyClock(Clock):
    """A tenth of a second goes by with every look."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """One look later."""
        self.now += 0.1
        return self.now

    def wall(self) -> float:
        """The same."""
        return self.monotonic()

    def sleep(self, seconds: float) -> None:
        """Nothing waits."""
        self.now += seconds


def test_a_long_replay_may_take_longer_than_the_patience() -> None:
    clock, context = HastyClock(), zmq.Context[zmq.Socket[bytes]]()
    with publishing() as publisher:
        publisher.publish(200, live=False)
        client = ReplayClient(context, publisher.replay_endpoint, clock)
        replay = client.fetch(0, PATIENCE_S)
    context.destroy(linger=0)
    assert replay.complete
    assert len(replay.batches) == 200
    assert clock.now > 10 * PATIENCE_S  # all of it took far longer


def test_a_replay_that_stops_is_given_up_after_the_patience() -> None:
    clock, context = HastyClock(), zmq.Context[zmq.Socket[bytes]]()
    with publishing() as publisher:
        publisher.endless = True
        publisher.publish(5, live=False)
        client = ReplayClient(context, publisher.replay_endpoint, clock)
        replay = client.fetch(0, PATIENCE_S)
    context.destroy(linger=0)
    assert not replay.complete
    assert len(replay.batches) <= 5

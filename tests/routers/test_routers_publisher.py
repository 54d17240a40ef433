"""The sockets that a live consumer subscribes to: joined before anything is said, replayed on demand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import zmq

from tierfuzz.clock import FakeClock
from tierfuzz.errors import EnvironmentFailure
from tierfuzz.routers.publisher import LivePublisher
from tierfuzz.worker.replay import END_OF_REPLAY

BOUND_MS = 10_000


@pytest.fixture
def publisher() -> Iterator[LivePublisher]:
    one = LivePublisher()
    yield one
    one.close()


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    made: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    yield made
    made.destroy(linger=0)


def received(socket: zmq.Socket[bytes], publisher: LivePublisher) -> list[bytes]:
    """The next message, while the publisher does its part."""
    for _ in range(BOUND_MS // 10):
        publisher.serve()
        if socket.poll(10):
            return socket.recv_multipart()
    raise AssertionError(f"nothing came within {BOUND_MS} ms")


def test_what_is_sent_after_joining_arrives(
    publisher: LivePublisher, context: zmq.Context[zmq.Socket[bytes]]
) -> None:
    with context.socket(zmq.SUB) as subscriber:
        subscriber.subscribe(b"")
        subscriber.connect(publisher.endpoint)
        publisher.wait_joined("the test")
        publisher.send(7, b"seven")
        assert received(subscriber, publisher) == [b"", (7).to_bytes(8, "big"), b"seven"]


def test_who_does_not_subscribe_is_named() -> None:
    publisher = LivePublisher(FakeClock())
    with pytest.raises(EnvironmentFailure, match=r"^nobody did not subscribe to tcp://127\."):
        publisher.wait_joined("nobody")
    publisher.close()


def test_a_replay_brings_what_is_remembered_and_an_end(
    publisher: LivePublisher, context: zmq.Context[zmq.Socket[bytes]]
) -> None:
    for number in range(3):
        publisher.send(number, b"%d" % number)
    with context.socket(zmq.DEALER) as asking:
        asking.connect(publisher.replay_endpoint)
        asking.send_multipart([b"", (1).to_bytes(8, "big")])
        bodies = [received(asking, publisher)[-2:] for _ in range(3)]
    assert bodies == [[(1).to_bytes(8, "big"), b"1"], [(2).to_bytes(8, "big"), b"2"], [END_OF_REPLAY, b""]]


def test_a_silent_endpoint_takes_the_question_and_says_nothing(
    publisher: LivePublisher, context: zmq.Context[zmq.Socket[bytes]]
) -> None:
    publisher.send(0, b"zero")
    publisher.silent = True
    with context.socket(zmq.DEALER) as asking:
        asking.connect(publisher.replay_endpoint)
        asking.send_multipart([b"", (0).to_bytes(8, "big")])
        for _ in range(BOUND_MS):
            if publisher.replays:
                break
            publisher.serve()
            asking.poll(1)
        assert publisher.replays == 1
        publisher.silent = False
        asking.send_multipart([b"", (0).to_bytes(8, "big")])
        assert received(asking, publisher)[-1] == b"zero"  # the first that comes answers the second question
        assert received(asking, publisher)[-2] == END_OF_REPLAY
        assert not asking.poll(0)

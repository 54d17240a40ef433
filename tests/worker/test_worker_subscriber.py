"""The subscriber on real sockets: joins late, loses messages, meets restarts and silence."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
import zmq
from publisher import Publisher, publishing
from waiting import BOUND_S, wait_for

from tierfuzz.events import AllBlocksCleared, Batch
from tierfuzz.worker import subscriber as module
from tierfuzz.worker.ports import reserve_ports
from tierfuzz.worker.subscriber import EventSubscriber

Both = tuple[Publisher, EventSubscriber]


@pytest.fixture(params=[False, True], ids=["replay without topic", "replay with topic"])
def both(request: pytest.FixtureRequest) -> Iterator[Both]:
    """A publisher, and a subscriber that has joined."""
    with (
        publishing(topic_frame=request.param) as publisher,
        closing(
            EventSubscriber(publisher.endpoint, publisher.replay_endpoint, topic="kv-events")
        ) as subscriber,
    ):
        publisher.joined()
        yield publisher, subscriber


def drained(subscriber: EventSubscriber, count: int) -> list[Batch]:
    """Exactly `count` batches, as they come."""
    batches: list[Batch] = []

    def enough() -> bool:
        batches.extend(subscriber.drain())
        return len(batches) >= count

    wait_for(f"{count} batches, have {len(batches)}", enough)
    assert len(batches) == count
    return batches


def rejoined(publisher: Publisher, subscriber: EventSubscriber) -> None:
    """Wait for a new subscription; a SUB socket renews it only when it is used."""
    wait_for("a new subscription", lambda: subscriber.drain() or publisher.has_joined())


def slugs(subscriber: EventSubscriber) -> list[str]:
    """Findings so far."""
    return [finding.slug for finding in subscriber.take_findings()]


def stamps(batches: list[Batch]) -> list[float]:
    """The time stamps: 1000 a process, 1 a batch."""
    return [batch.ts for batch in batches]


def test_batches_come_in_order_decoded_and_timed(both: Both) -> None:
    publisher, subscriber = both
    publisher.publish(5)
    batches = drained(subscriber, 5)
    assert [batch.seq for batch in batches] == [0, 1, 2, 3, 4]
    assert all(batch.events == (AllBlocksCleared(),) and not batch.replayed for batch in batches)
    assert all(batch.received > 0 for batch in batches)
    assert subscriber.last_seq == 4
    assert (slugs(subscriber), publisher.asked) == ([], [])


def test_what_was_published_before_the_join_is_fetched_by_sync() -> None:
    with publishing() as publisher:
        publisher.publish(3)
        with closing(
            EventSubscriber(publisher.endpoint, publisher.replay_endpoint, topic="kv-events")
        ) as subscriber:
            assert subscriber.sync(BOUND_S) == 2
            batches = subscriber.drain()
            assert [(batch.seq, batch.replayed) for batch in batches] == [(0, True), (1, True), (2, True)]
            assert slugs(subscriber) == []


def test_what_was_published_before_the_join_is_also_fetched_when_the_next_one_comes(both: Both) -> None:
    publisher, subscriber = both
    publisher.publish(3, live=False)
    publisher.publish(1)
    batches = drained(subscriber, 4)
    assert [(batch.seq, batch.replayed) for batch in batches] == [(0, True), (1, True), (2, True), (3, False)]
    assert slugs(subscriber) == []


def test_sync_brings_what_never_came_live(both: Both) -> None:
    publisher, subscriber = both
    publisher.publish(4)
    assert subscriber.sync(BOUND_S) == 3
    publisher.publish(2, live=False)
    assert subscriber.sync(BOUND_S) == 5
    assert subscriber.sync(BOUND_S) == 5
    assert [batch.seq for batch in drained(subscriber, 6)] == [0, 1, 2, 3, 4, 5]
    assert (slugs(subscriber), publisher.asked[-1]) == ([], 5)


def test_sync_before_anything_was_published(both: Both) -> None:
    _, subscriber = both
    assert subscriber.sync(BOUND_S) == -1
    assert subscriber.drain() == []


def test_lost_messages_are_filled_in(both: Both) -> None:
    publisher, subscriber = both
    publisher.publish(2)
    publisher.publish(3, live=False)
    publisher.publish(2)
    batches = drained(subscriber, 7)
    assert [batch.seq for batch in batches] == [0, 1, 2, 3, 4, 5, 6]
    assert {2, 3, 4} <= {batch.seq for batch in batches if batch.replayed}
    assert slugs(subscriber) == []


def test_messages_that_exist_nowhere_are_a_gap(both: Both) -> None:
    publisher, subscriber = both
    publisher.publish(2)
    publisher.publish(3, live=False, kept=False)
    publisher.publish(2)
    assert [batch.seq for batch in drained(subscriber, 4)] == [0, 1, 5, 6]
    (finding,) = subscriber.take_findings()
    assert finding.slug == "sequence-gap"
    assert finding.detail.startswith("batches 2 to 4 never came")


def test_a_gap_at_the_very_end_is_found_by_sync_and_next_batch(both: Both) -> None:
    publisher, subscriber = both
    publisher.publish(2)
    publisher.publish(1, live=False, kept=False)
    publisher.publish(1, live=False)
    assert subscriber.sync(BOUND_S) == 3
    assert slugs(subscriber) == ["sequence-gap"]


def test_duplicates_are_ignored(both: Both) -> None:
    publisher, subscriber = both
    publisher.publish(3)
    for seq, body in publisher.buffer:
        publisher.send(seq, body)
    publisher.publish(1)
    assert [batch.seq for batch in drained(subscriber, 4)] == [0, 1, 2, 3]
    assert subscriber.counts["duplicates"] == 3
    assert slugs(subscriber) == []


@pytest.mark.parametrize("before", [1, 5])
@pytest.mark.parametrize("after", [1, 3, 8])
def test_a_restart_is_a_finding_and_the_new_process_is_followed(both: Both, before: int, after: int) -> None:
    publisher, subscriber = both
    publisher.publish(before)
    drained(subscriber, before)
    publisher.restart()
    rejoined(publisher, subscriber)
    publisher.publish(after)
    batches = drained(subscriber, after)
    assert stamps(batches) == [1000.0 + seq for seq in range(after)]
    assert slugs(subscriber) == ["subscriber-restart"]


def test_a_restart_of_which_nothing_came_live_is_found_by_sync(both: Both) -> None:
    publisher, subscriber = both
    publisher.publish(5)
    drained(subscriber, 5)
    publisher.restart()
    publisher.publish(2, live=False)
    assert subscriber.sync(BOUND_S) == 1
    assert stamps(subscriber.drain()) == [1000.0, 1001.0]
    assert slugs(subscriber) == ["subscriber-restart"]


def test_an_expected_restart_is_no_finding_and_loses_nothing(both: Both) -> None:
    publisher, subscriber = both
    publisher.publish(2)
    assert subscriber.sync(BOUND_S) == 1
    publisher.publish(1, live=False)
    assert subscriber.sync(BOUND_S) == 2
    subscriber.expect_restart()
    assert stamps(subscriber.drain()) == [0.0, 1.0, 2.0]
    publisher.restart()
    rejoined(publisher, subscriber)
    publisher.publish(2)
    assert stamps(drained(subscriber, 2)) == [1000.0, 1001.0]
    assert slugs(subscriber) == []


def test_a_replay_without_an_end_is_truncated_and_the_live_order_believed(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher, subscriber = both
    monkeypatch.setattr(module, "REPLAY_BOUND_S", 0.1)
    publisher.endless = True
    publisher.publish(2)
    drained(subscriber, 2)
    publisher.publish(1, live=False)
    publisher.publish(1)
    assert [batch.seq for batch in drained(subscriber, 1)] == [3]
    assert slugs(subscriber) == ["replay-truncated", "sequence-gap"]
    assert subscriber.sync(0.1) is None
    assert slugs(subscriber) == ["replay-truncated"]


def test_an_audit_asks_for_all_since_the_mark_and_finds_nothing_wrong_with_a_good_memory(both: Both) -> None:
    publisher, subscriber = both
    publisher.publish(3)
    drained(subscriber, 3)
    subscriber.mark()
    publisher.publish(2)
    drained(subscriber, 2)
    for first in (3, 5):
        subscriber.audit(BOUND_S)
        assert publisher.asked[-1] == first
    assert slugs(subscriber) == []
    assert subscriber.drain() == []


def test_an_audit_finds_a_memory_that_is_not_what_was_sent(both: Both) -> None:
    publisher, subscriber = both
    publisher.publish(4)
    drained(subscriber, 4)
    publisher.buffer[1:3] = [(2, publisher.buffer[3][1])]
    subscriber.audit(BOUND_S)
    assert [finding.detail for finding in subscriber.take_findings()] == [
        "batch 1 came, and a replay skips it",
        "batch 2 has another content in a replay",
    ]
    publisher.endless = True
    publisher.publish(1)
    drained(subscriber, 1)
    subscriber.audit(0.1)
    assert slugs(subscriber) == ["replay-truncated"]


def test_a_silent_replay_is_truncated_and_late_answers_do_no_harm(both: Both) -> None:
    publisher, subscriber = both
    publisher.publish(3)
    publisher.silent = True
    assert subscriber.sync(0.1) is None
    assert slugs(subscriber) == ["replay-truncated"]
    publisher.silent = False
    publisher.publish(1, live=False)
    assert subscriber.sync(BOUND_S) == 3
    assert slugs(subscriber) == []


def test_a_question_that_was_lost_is_asked_again(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher, subscriber = both
    monkeypatch.setattr("tierfuzz.worker.replay.FIRST_SILENCE_S", 0.05)
    publisher.publish(1, live=False)
    publisher.silent = True
    healer = threading.Thread(target=speak_when_asked, args=(publisher,))
    healer.start()
    assert subscriber.sync(BOUND_S) == 0
    healer.join()
    assert slugs(subscriber) == []
    assert len(publisher.asked) >= 2


def speak_when_asked(publisher: Publisher) -> None:
    """Leave one question without an answer."""
    wait_for("a question", lambda: publisher.asked)
    publisher.silent = False


def test_odd_replies_are_findings_and_the_good_ones_count(both: Both) -> None:
    publisher, subscriber = both
    publisher.odd_replies = [[b""], [b"", b"short", b"x"], [b"not empty", b"\0" * 8, b"x"], [b""] * 9]
    publisher.publish(2, live=False)
    assert subscriber.sync(BOUND_S) == 1
    assert slugs(subscriber) == ["malformed-frames"] * 4
    assert subscriber.counts["malformed-frames"] == 4


def test_other_topics_are_not_heard() -> None:
    with (
        publishing(topic="mine") as publisher,
        closing(EventSubscriber(publisher.endpoint, None, topic="mine")) as subscriber,
    ):
        publisher.joined()
        publisher.frames(b"other", b"\0" * 8, b"x")
        publisher.publish(1)
        assert stamps(drained(subscriber, 1)) == [0.0]
        assert slugs(subscriber) == []


def test_without_a_replay_socket_gaps_are_told_and_sync_says_that_it_cannot_know() -> None:
    with publishing() as publisher, closing(EventSubscriber(publisher.endpoint)) as subscriber:
        publisher.joined()
        publisher.publish(1)
        publisher.publish(2, live=False)
        publisher.publish(1)
        assert [batch.seq for batch in drained(subscriber, 2)] == [0, 3]
        assert slugs(subscriber) == ["sequence-gap"]
        assert subscriber.sync(0.05) is None
        assert slugs(subscriber) == []


def test_a_worker_that_connects_is_heard_by_binding() -> None:
    with reserve_ports(1) as ports, zmq.Context() as context, context.socket(zmq.XPUB) as live:
        endpoint = f"tcp://127.0.0.1:{ports.numbers[0]}"
        with closing(EventSubscriber(endpoint, bind=True)) as subscriber:
            live.connect(endpoint)
            wait_for("a subscription", lambda: subscriber.drain() or live.poll(1))
            live.send_multipart([b"", b"\0" * 8, b"garbage"])
            drained(subscriber, 1)


def test_nobody_there_is_no_error_and_no_hang() -> None:
    with reserve_ports(2) as ports:
        live, replay = (f"tcp://127.0.0.1:{number}" for number in ports.numbers)
        with closing(EventSubscriber(live, replay)) as subscriber:
            assert subscriber.drain() == []
            assert subscriber.sync(0.05) is None
            assert slugs(subscriber) == ["replay-truncated"]


def test_a_peer_that_does_not_speak_the_protocol_is_no_error_and_no_hang() -> None:
    stop = threading.Event()

    def babble(server: socket.socket) -> None:
        server.settimeout(0.02)
        while not stop.is_set():
            try:
                with server.accept()[0] as peer:
                    peer.sendall(bytes(range(256)) * 16)
            except OSError:
                continue

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=babble, args=(server,))
        thread.start()
        endpoint = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with closing(EventSubscriber(endpoint, endpoint)) as subscriber:
            assert subscriber.sync(0.3) is None
            assert subscriber.drain() == []
        stop.set()
        thread.join()


def test_findings_are_bounded_but_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FINDINGS", 3)
    with publishing() as publisher, closing(EventSubscriber(publisher.endpoint)) as subscriber:
        publisher.joined()
        for _ in range(10):
            publisher.frames(b"alone")
        publisher.publish(1)
        drained(subscriber, 1)
        assert slugs(subscriber) == ["malformed-frames"] * 3
        assert subscriber.counts["malformed-frames"] == 10
        publisher.frames(b"alone")
        publisher.publish(1)
        drained(subscriber, 1)
        assert slugs(subscriber) == ["malformed-frames"]

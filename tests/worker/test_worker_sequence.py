"""The order of batches, as pure logic: what live and replay bring, in every disorder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierfuzz.worker.sequence import REMEMBERED, Arrival, Sequencer, arrivals


class Bench:
    """A sequencer with what it found, and streams of batches to feed it."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.details: list[str] = []
        self.sequencer = Sequencer(self._find)

    def _find(self, slug: str, detail: str) -> None:
        self.found.append(slug)
        self.details.append(detail)

    def live(self, *batches: tuple[int, bytes]) -> None:
        """Live messages in this order."""
        for seq, payload in batches:
            self.sequencer.offer(Arrival(seq, payload, 1.0))

    def replay(self, *batches: tuple[int, bytes]) -> None:
        """What drain() does with a complete replay buffer: from the anchor, else from 0."""
        ours, held = self.sequencer, arrivals(batches, 2.0)
        heard = [one for one in held if one.seq >= ours.anchor]
        if not ours.recognises(heard):
            heard = held
            if ours.contradicted_by(held):
                ours.restart("seen in its replay")
        if heard:
            ours.merge(heard)
        else:
            ours.believe()

    def taken(self) -> list[tuple[int, bytes]]:
        """What was released."""
        return [(one.seq, one.payload) for one in self.sequencer.take()]


def stream(count: int, name: str = "a", first: int = 0) -> list[tuple[int, bytes]]:
    """Batches first..count-1 of a process."""
    return [(seq, f"{name}{seq}".encode()) for seq in range(first, count)]


def test_an_orderly_stream_goes_through_at_once() -> None:
    bench = Bench()
    bench.live(*stream(5))
    assert not bench.sequencer.unclear
    assert bench.taken() == stream(5)
    assert bench.taken() == []


def test_repeats_are_dropped_and_counted() -> None:
    bench = Bench()
    bench.live(*stream(3), *stream(3), *stream(4))
    assert bench.taken() == stream(4)
    assert bench.sequencer.counts["duplicates"] == 6
    assert bench.found == []


def test_early_ones_wait_for_their_turn() -> None:
    bench = Bench()
    bench.live(*reversed(stream(100)))
    assert bench.taken() == stream(100)
    assert (bench.found, bench.sequencer.unclear) == ([], False)


def test_a_gap_is_filled_from_the_replay_without_a_finding() -> None:
    bench, whole = Bench(), stream(10)
    bench.live(*whole[:3], *whole[7:9])
    bench.replay(*whole)
    assert bench.taken() == whole
    assert bench.found == []
    assert bench.sequencer.counts["replayed"] == 5


def test_live_batches_keep_their_own_time_of_arrival() -> None:
    bench, whole = Bench(), stream(3)
    bench.live(whole[1])
    bench.replay(*whole)
    taken = bench.sequencer.take()
    assert [(one.received, one.replayed) for one in taken] == [(2.0, True), (1.0, False), (2.0, True)]


def test_a_gap_that_no_replay_fills_is_named() -> None:
    bench, whole = Bench(), stream(10)
    bench.live(*whole[:3], *whole[7:])
    bench.replay(whole[2], *whole[5:])
    assert bench.taken() == [*whole[:3], *whole[5:]]
    assert bench.found == ["sequence-gap"]
    assert bench.details == ["batches 3 to 4 never came and cannot be replayed"]


def test_a_batch_that_the_buffer_lacks_but_that_came_live_is_kept() -> None:
    bench, whole = Bench(), stream(5)
    bench.live(whole[0], whole[3])
    bench.replay(whole[0], whole[1], whole[2], whole[4])
    assert bench.taken() == whole
    assert bench.found == []


def test_a_late_joiner_behind_a_full_buffer_misses_the_start() -> None:
    bench, whole = Bench(), stream(10)
    bench.live(whole[9])
    bench.replay(*whole[4:])
    assert bench.taken() == whole[4:]
    assert bench.details == ["batches 0 to 3 never came and cannot be replayed"]


def test_a_worker_that_started_again_is_followed() -> None:
    bench, new = Bench(), stream(3, "b")
    bench.live(*stream(5), *new[1:])
    assert bench.sequencer.unclear
    bench.replay(*new)
    assert bench.taken() == [*stream(5), *new]
    assert bench.found == ["subscriber-restart"]


@pytest.mark.parametrize("replayed", [True, False])
def test_a_new_worker_that_gets_past_the_old_number_is_no_continuation(replayed: bool) -> None:
    bench, new = Bench(), stream(9, "b")
    bench.live(*stream(2), *new)
    if replayed:
        bench.replay(*new)
    else:
        bench.sequencer.believe()
    assert bench.taken() == [*stream(2), *new]
    assert bench.found == ["subscriber-restart"]


def test_a_new_worker_that_is_already_further_is_noticed_too() -> None:
    bench, new = Bench(), stream(9, "b")
    bench.live(*stream(5))
    bench.replay(*new)
    assert bench.taken() == [*stream(5), *new]
    assert bench.found == ["subscriber-restart"]


def test_a_new_worker_of_which_nothing_came_live_is_noticed() -> None:
    bench, new = Bench(), stream(2, "b")
    bench.live(*stream(5))
    bench.replay(*new)
    assert bench.taken() == [*stream(5), *new]
    assert bench.found == ["subscriber-restart"]


def test_a_restart_long_after_the_start_is_noticed() -> None:
    bench, old, new = Bench(), stream(3 * REMEMBERED), stream(2, "b")
    bench.live(*old)
    bench.replay(*new)
    assert bench.taken() == [*old, *new]
    assert bench.found == ["subscriber-restart"]


def test_an_expected_restart_is_no_finding() -> None:
    bench, new = Bench(), stream(2, "b")
    bench.live(*stream(5))
    bench.sequencer.forget()
    bench.live(*new)
    assert bench.taken() == [*stream(5), *new]
    assert bench.found == []


@pytest.mark.parametrize("bogus", [2**64 - 2, 77, 1])
def test_a_number_that_cannot_be_is_told_and_changes_nothing(bogus: int) -> None:
    bench, whole = Bench(), stream(6)
    bench.live(*whole[:4], (bogus, b"?"), whole[5])
    bench.replay(*whole)
    bench.live((6, b"a6"))
    assert bench.taken() == [*whole, (6, b"a6")]
    assert bench.found == ["sequence-gap"]
    assert f"under number {bogus}" in bench.details[0]


def test_two_batches_of_one_number_are_told() -> None:
    bench, whole = Bench(), stream(4)
    bench.live(whole[0], (2, b"?"), (2, b"!"), (2, b"?"))
    bench.replay(*whole)
    assert bench.taken() == whole
    assert bench.found == ["sequence-gap", "sequence-gap"]
    assert [detail.partition(": ")[2] for detail in bench.details] == [
        "another batch came under the same number",
        "the replay has other content",
    ]


# without a replay ----------------------------------------------------------------------------------
def test_without_a_replay_a_gap_is_told_and_the_stream_goes_on() -> None:
    bench, whole = Bench(), stream(8)
    bench.live(*whole[:2], *whole[5:])
    bench.sequencer.believe()
    assert bench.taken() == [*whole[:2], *whole[5:]]
    assert bench.details == ["batches 2 to 4 never came and cannot be replayed"]


def test_without_a_replay_a_lower_number_is_a_restart() -> None:
    bench, new = Bench(), stream(3, "b")
    bench.live(*stream(5), *new)
    bench.sequencer.believe()
    assert bench.taken() == [*stream(5), *new]
    assert bench.found == ["subscriber-restart"]


def test_without_a_replay_a_bogus_number_in_a_running_stream_is_told() -> None:
    bench, whole = Bench(), stream(5)
    bench.live(*whole[:3], (2**63, b"?"), *whole[3:])
    bench.sequencer.believe()
    assert bench.taken() == whole
    assert bench.found == ["sequence-gap"]


def test_without_a_replay_the_order_heals_after_a_bogus_last_number() -> None:
    bench, whole = Bench(), stream(5)
    bench.live(*whole[:3], (2**63, b"?"))
    bench.sequencer.believe()
    bench.live(*whole[3:])
    bench.sequencer.believe()
    assert bench.taken() == [*whole[:3], (2**63, b"?"), *whole[3:]]
    assert bench.found == ["sequence-gap", "subscriber-restart", "sequence-gap"]


# any disorder --------------------------------------------------------------------------------------
@st.composite
def disorders(draw: st.DrawFn) -> tuple[int, list[list[int]]]:
    """A number of batches, and rounds of live deliveries: lost, repeated, exchanged."""
    count = draw(st.integers(1, 20))
    rounds = draw(st.lists(st.lists(st.integers(0, count - 1), max_size=12), max_size=4))
    return count, rounds


@given(disorders())
def test_with_a_replay_every_batch_comes_once_and_in_order(disorder: tuple[int, list[list[int]]]) -> None:
    count, rounds = disorder
    bench, whole = Bench(), stream(count)
    published = 0
    for delivery in rounds:
        bench.live(*(whole[seq] for seq in delivery))
        published = max([published, *(seq + 1 for seq in delivery)])
        if bench.sequencer.unclear:
            bench.replay(*whole[:published])
        assert bench.sequencer.next == published
    bench.replay(*whole)
    assert bench.taken() == whole
    assert bench.found == []


@given(disorders())
def test_without_a_replay_nothing_is_lost_or_told_wrongly_in_an_ascending_stream(
    disorder: tuple[int, list[list[int]]],
) -> None:
    count, rounds = disorder
    bench, whole = Bench(), stream(count)
    delivered = sorted({seq for delivery in rounds for seq in delivery})
    for seq in delivered:
        bench.live(whole[seq])
        bench.sequencer.believe()
    assert bench.taken() == [whole[seq] for seq in delivered]
    gaps = sum(b - a > 1 for a, b in zip([-1, *delivered], delivered, strict=False))
    assert bench.found == ["sequence-gap"] * gaps


@given(
    st.lists(st.tuples(st.integers(0, 2**64 - 1) | st.integers(0, 30), st.binary(max_size=2)), max_size=40)
)
def test_no_stream_of_numbers_breaks_it(messages: list[tuple[int, bytes]]) -> None:
    bench = Bench()
    for message in messages:
        bench.live(message)
        bench.sequencer.believe()
        assert not bench.sequencer.unclear
    told = len(bench.found) + bench.sequencer.counts["duplicates"] + len(bench.taken())
    assert told >= len(messages)


@pytest.mark.parametrize(
    ("replay", "found"),
    [
        (stream(5), []),
        (stream(5, first=2), []),  # what is older than the buffer is forgotten in good faith
        ([], []),
        (stream(7), []),  # newer ones are on their way
        ([*stream(2), *stream(5, first=3)], ["batch 2 came, and a replay skips it"]),
        ([*stream(4), (4, b"other")], ["batch 4 has another content in a replay"]),
    ],
)
def test_a_replay_that_is_not_what_came_is_told(replay: list[tuple[int, bytes]], found: list[str]) -> None:
    bench = Bench()
    bench.live(*stream(5))
    assert bench.sequencer.altered(arrivals(replay, 2.0)) == found
    assert bench.found == []


def test_a_batch_that_never_came_is_not_missed_a_second_time() -> None:
    bench = Bench()
    bench.live((0, b"a0"), (2, b"a2"))
    bench.replay((0, b"a0"), (2, b"a2"))
    assert bench.found == ["sequence-gap"]
    assert bench.sequencer.altered(arrivals([(0, b"a0"), (2, b"a2")], 2.0)) == []

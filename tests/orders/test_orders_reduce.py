"""Shrinking of streams: small, still wrong in the same way, no more illegal than before, and 1-minimal."""

from __future__ import annotations

import pytest
from short import BLOCKS, SIZE, short
from standins import StandIn

from tierfuzz.events import BlockStored
from tierfuzz.hashing import page_hashes
from tierfuzz.orders.check import check
from tierfuzz.orders.cuts import lifted, merged, plainer, renumbered, singles, trimmed, with_entries
from tierfuzz.orders.legality import explain, families
from tierfuzz.orders.reduce import Reduced, reduce
from tierfuzz.orders.stream import Sent, Stream
from tierfuzz.program import WritePolicy
from tierfuzz.shrink.budget import Limits

NOISE = "Sg1-3 Sh1-2 Rg3 C Sg1 Sg2 Sg3-6 Sh1 Sh2-3 Sh4-6 Rg6 Sg6 Rg6-5 Rg4 Rh6 Rg3-2 Rg1 Sg1-4 Rg4-1"
BACK_NOISE = "Sg1-3 Rg3 Rg2 Sh2 Sh3 Rg1 Sh1 Sg1-3 X Sg1-2 Sg3-5 Rg5-4 Sh4-5 Rg3-1 Sh1-3 Rh5 Sg1-4 Rg4-2"


def shrunk(stream: Stream, fault: str, limits: Limits | None = None) -> Reduced:
    """What is left of a stream on which a stand-in is wrong."""
    finding = check(stream, lambda: StandIn(fault)).findings[0]
    if limits is not None:
        return reduce(stream, finding, lambda: StandIn(fault), limits=limits)
    return reduce(stream, finding, lambda: StandIn(fault))


@pytest.mark.parametrize(
    ("text", "policy", "fault", "least"),
    [
        (NOISE, "write_through", "tier-blind", "Sg1 Sh1 Rg1"),
        (BACK_NOISE, "write_back", "tier-blind", "Sg1 Rg1 Sh1 Sg1 Rg1"),
        (BACK_NOISE, "write_back", "host-as-device", "Sg1 Rg1 Sh1"),
        (NOISE, "write_through", "clear-ignored", "Sg1 C"),
        (BACK_NOISE, "write_back", "clear-ignored", "Sg1 X"),
        ("Sg1-4 Sh1-2 Sh3-4 Rg4-1", "write_through", "crash", "Sg1-2 Sh1 Sh2"),
    ],
)
def test_a_long_stream_shrinks_to_the_least_one(
    text: str, policy: WritePolicy, fault: str, least: str
) -> None:
    reduced = shrunk(short(text, policy), fault)
    assert reduced.minimal
    assert reduced.stream.entries == short(least, policy).entries
    assert explain(reduced.stream) is None
    assert check(reduced.stream, lambda: StandIn(fault)).findings == [reduced.finding]
    assert reduced.runs <= 100


def test_no_message_of_the_least_stream_can_go() -> None:
    stream = shrunk(short(NOISE, "write_through"), "tier-blind").stream
    for at in range(len(stream.entries)):
        rest = with_entries(stream, stream.entries[:at] + stream.entries[at + 1 :])
        assert explain(rest) is not None or not check(rest, lambda: StandIn("tier-blind")).findings


def test_an_illegal_stream_stays_in_its_family() -> None:
    stream = short("Sg1-3 Rg3-1 Sh3 Sh2 Sh1 Sg1-3")
    reduced = shrunk(stream, "orphan-dropped")
    assert families(reduced.stream) == families(stream) == {"child-first"}
    assert reduced.stream.entries == short("Sg1-2 Rg2-1 Sh2 Sh1").entries
    assert reduced.minimal


def test_a_legal_stream_never_shrinks_into_an_illegal_one() -> None:
    """Without its order this consumer is wrong after one event; no legal stream of one event shows it."""
    reduced = shrunk(short("Sg1-2 Sh1-2 Rg2-1 Sg1-2 Rg2 Rh2", "write_through"), "tier-blind")
    assert explain(reduced.stream) is None


def test_a_spent_budget_leaves_a_stream_that_fails_and_says_so() -> None:
    reduced = shrunk(short(NOISE, "write_through"), "tier-blind", Limits(runs=6))
    assert not reduced.minimal
    assert reduced.runs == 6
    assert check(reduced.stream, lambda: StandIn("tier-blind")).findings


def test_workers_and_ranks_that_do_not_matter_become_one() -> None:
    stream = short(NOISE, "write_through")
    moved = [Sent(1, 1, e.events, ("tenant-a",)) if isinstance(e, Sent) else e for e in stream.entries]
    reduced = shrunk(with_entries(stream, moved), "tier-blind")
    assert reduced.stream.entries == short("Sg1 Sh1 Rg1").entries


def test_the_legal_part_of_a_stream_is_preferred() -> None:
    """The first wrong answer comes of an illegal order, a later one of a legal one."""
    stream = short("Sg1 Rg1 Sh1 Sg1 Sg1 Rg1 Sg2-3 Rg3 Rg2 Sh2 Sh3 Sg2-3 Rg3-2", "write_back")
    other = short("Sg7 Rg7 Sh7 Sg7 Rg7".replace("7", "1"), "write_back")
    pages = lifted(short("Sg1-7 Rg7 Sh7 Sg7 Rg7"), set(BLOCKS[:6]))
    assert pages is not None
    reduced = shrunk(with_entries(stream, stream.entries + pages.entries), "tier-blind")
    assert explain(reduced.stream) is None
    assert reduced.stream.entries == other.entries


# cuts ----------------------------------------------------------------------------------------------
def test_one_event_loses_one_page_at_a_time() -> None:
    found = [candidate.entries for candidate in trimmed(short("Sg1-2 Rg2-1"))]
    assert short("Sg1 Rg2-1").entries in found
    assert short("Sg1-2 Rg2").entries in found
    assert short("Sg1-2 Rg1").entries in found


def test_a_page_that_others_hang_from_can_go_alone() -> None:
    moved = lifted(short("Sg1-3 Rg3"), {BLOCKS[0]})
    assert moved is not None
    store = moved.entries[0]
    assert isinstance(store, Sent)
    assert isinstance(store.events[0], BlockStored)
    assert store.events[0].parent is None
    assert store.events[0].tokens == (2,) * SIZE + (3,) * SIZE
    assert store.events[0].hashes == page_hashes(store.events[0].tokens, SIZE)
    assert explain(moved) is None


def test_pages_go_from_every_event_and_empty_messages_with_them() -> None:
    moved = lifted(short("Sg1-4 Sh1-4 Rg4-3 Rg2-1"), set(BLOCKS[2:4]))
    assert moved is not None
    assert moved.entries == short("Sg1-2 Sh1-2 Rg2-1").entries
    nothing = lifted(short("Sg1-4 Rg4-1"), set(BLOCKS))
    assert nothing is not None
    assert nothing.entries == ()


def test_a_page_does_not_go_where_two_others_would_become_one() -> None:
    one, two, three = (1,) * SIZE, (2,) * SIZE, (3,) * SIZE
    events = tuple(
        BlockStored(page_hashes(tokens, SIZE), None, tokens, SIZE, "GPU")
        for tokens in (one + three, two + three)
    )
    stream = Stream("write_back", (Sent(0, 0, events),), SIZE)
    assert lifted(stream, {events[0].hashes[0]}) is not None
    assert lifted(stream, {events[0].hashes[0], events[1].hashes[0]}) is None


def test_pages_are_numbered_in_order_of_appearance() -> None:
    moved = lifted(short("Sg1-4 Rg4-1"), {BLOCKS[0]})
    assert moved is not None
    numbered = renumbered(moved)
    assert numbered is not None
    assert numbered.entries == short("Sg1-3 Rg3-1").entries


def test_events_of_one_kind_are_merged_where_the_earlier_or_the_later_is() -> None:
    found = [candidate.entries for candidate in merged(short("Sg1 Sh1 Sg2 Rg2 Rg1"))]
    assert short("Sg1-2 Sh1 Rg2 Rg1").entries in found
    assert short("Sh1 Sg1-2 Rg2 Rg1").entries in found
    assert short("Sg1 Sh1 Sg2 Rg2-1").entries in found
    assert list(merged(short("Sg2 Sg1"))) == []  # no chain


def test_messages_are_split_into_events() -> None:
    one, two = short("Sg1 Sh1").entries
    assert isinstance(one, Sent)
    assert isinstance(two, Sent)
    together = Sent(0, 0, one.events + two.events, ("", "tenant-a"))
    split = singles(Stream("write_through", (together,), SIZE)).entries
    assert split == (Sent(0, 0, one.events, ("",)), Sent(0, 0, two.events, ("tenant-a",)))


def test_plainer_streams_have_fewer_sources_and_no_namespaces() -> None:
    one, two = short("Sg1 Sh1").entries
    assert isinstance(two, Sent)
    stream = Stream("write_through", (one, Sent(1, 1, two.events, ("tenant-a",))), SIZE)
    found = [candidate.entries[1] for candidate in plainer(stream)]
    assert found == [
        Sent(0, 1, two.events, ("tenant-a",)),
        Sent(1, 0, two.events, ("tenant-a",)),
        Sent(1, 1, two.events),
    ]

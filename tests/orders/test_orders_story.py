"""The story of a minimal stream: rows with answers, the order against the legal ones, whose fault it is."""

from __future__ import annotations

from short import short
from standins import StandIn

from tierfuzz.orders.check import check
from tierfuzz.orders.reduce import reduce
from tierfuzz.orders.story import Story, story
from tierfuzz.program import WritePolicy
from tierfuzz.report.orders import told


def story_of(text: str, fault: str, policy: WritePolicy = "write_back") -> Story:
    """Shrink and tell."""
    stream = short(text, policy)
    finding = check(stream, lambda: StandIn(fault)).findings[0]
    reduced = reduce(stream, finding, lambda: StandIn(fault))
    return story(fault, lambda: StandIn(fault), stream, reduced)


def test_each_message_has_the_answer_beside_the_right_one() -> None:
    told_of = story_of("Sg1-2 Sh1 Sh2 Rg2 Rg1", "tier-blind", "write_through")
    assert [row.message for row in told_of.rows] == [
        "worker 0: store device p1",
        "worker 0: store host p1",
        "worker 0: remove device p1",
    ]
    assert [row.answered for row in told_of.rows][-1] == {"device": 0, "host": 0}
    assert told_of.rows[-1].right["counts"] == {"device": 0, "host": 1}
    assert (told_of.events, told_of.events_before, told_of.minimal) == (3, 5, True)
    assert told_of.asked == ["p1"]


def test_the_order_is_held_against_every_policy_and_engine() -> None:
    told_of = story_of("Sg1-2 Sh1 Sh2 Rg2 Rg1", "tier-blind", "write_through")
    legal = {(order.policy, order.profile): not order.why for order in told_of.orders}
    assert legal == {
        ("write_through", "sglang-0.5.17"): True,
        ("write_back", "sglang-0.5.17"): False,
        ("write_through_selective", "sglang-0.5.17"): True,
        ("write_through", "sglang-0.5.23"): True,
    }
    (illegal,) = (order for order in told_of.orders if order.why)
    assert illegal.message == 1
    assert "its device removal was announced before" in illegal.why


def test_the_text_names_the_consumer_where_the_order_is_legal() -> None:
    text = told(story_of("Sg1-2 Sh1 Sh2 Rg2 Rg1", "tier-blind", "write_through"))
    assert text.startswith("tier-blind answers less than is held after 3 events (from 5 in ")
    assert "answered device 0, host 0, right device 0, host 1   <- wrong" in text
    assert text.endswith("(write_through of sglang-0.5.17): the consumer is wrong.")


def test_the_text_names_the_family_where_the_order_is_illegal() -> None:
    text = told(story_of("Sg1-3 Rg3-1 Sh3 Sh2 Sh1", "orphan-dropped"))
    assert "store host p2 after p1" in text
    assert text.endswith("(known family child-first): the engine is to blame first, then the consumer.")


def test_both_readings_are_shown_where_they_differ() -> None:
    stream = short("Sg1 Sg1 Rg1 Sh1")
    finding = check(stream, lambda: StandIn("orphan-at-root"), "counts").findings[0]
    reduced = reduce(stream, finding, lambda: StandIn("orphan-at-root"), "counts")
    told_of = story("x", lambda: StandIn("orphan-at-root"), stream, reduced)
    assert told_of.rows[2].right == {"counts": {"device": 1, "host": 0}, "sets": {"device": 0, "host": 0}}
    assert "right" not in told(told_of).splitlines()[2]


def test_a_crash_has_its_error() -> None:
    told_of = story_of("Sg1-2 Sh1 Sh2", "crash", "write_through")
    assert told_of.detail.startswith("KeyError")
    assert told_of.rows[-1].answered is None
    assert told(told_of).startswith("crash raises an error after 3 events")

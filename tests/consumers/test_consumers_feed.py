"""A feed brings messages into order, asks for what is missing, and notices another process."""

from __future__ import annotations

from tierfuzz.consumers.feed import Feed, Kind

RESTARTED, LOST = "restarted", "lost"


def given(feed: Feed, *messages: tuple[int, str]) -> list[str]:
    """What is to be done: payloads to apply, and the kinds of other steps."""
    steps = [step for seq, text in messages for step in feed.offer(seq, text.encode())]
    return [step.payload.decode() if step.kind is Kind.APPLY else str(step.kind) for step in steps]


def started(*texts: str) -> Feed:
    feed = Feed()
    assert given(feed, *enumerate(texts)) == list(texts)
    assert feed.wish() is None
    return feed


def test_messages_in_order_are_applied_once() -> None:
    feed = started("a", "b")
    assert given(feed, (1, "b"), (2, "c"), (0, "a")) == ["c"]


def test_a_new_subscriber_asks_from_the_start() -> None:
    feed = Feed()
    assert feed.wish() == 0
    assert given(feed, (0, "a"), (1, "b")) == ["a", "b"]
    assert feed.wish() is None


def test_a_new_subscriber_that_gets_no_replay_goes_on_from_what_comes() -> None:
    feed = Feed()
    assert feed.wish() == 0
    assert list(feed.give_up()) == []
    assert given(feed, (7, "h")) == []
    assert feed.wish() is None, "asked before, and nothing has changed"
    assert [step.kind for step in feed.give_up()] == [Kind.LOST, Kind.APPLY]
    assert given(feed, (8, "i")) == ["i"]


def test_a_gap_is_filled_from_a_replay() -> None:
    feed = started("a", "b")
    assert given(feed, (3, "d")) == []
    assert feed.wish() == 1, "from the newest in hand, so that another process shows itself"
    assert given(feed, (1, "b"), (2, "c"), (3, "d")) == ["c", "d"]
    assert feed.wish() is None


def test_a_gap_that_no_replay_fills_is_given_up() -> None:
    feed = started("a", "b")
    assert given(feed, (3, "d"), (5, "f")) == []
    assert feed.wish() == 1
    assert [step.kind for step in feed.give_up()] == [Kind.LOST, Kind.APPLY]
    assert feed.next == 4
    assert feed.wish() == 3
    assert given(feed, (4, "e")) == ["e", "f"]


def test_a_number_with_other_content_is_another_process() -> None:
    feed = started("a", "b", "c")
    assert given(feed, (0, "A"), (1, "B"), (2, "C"), (3, "D")) == [RESTARTED, "A", "B", "C", "D"]


def test_a_process_that_is_past_the_old_numbers_shows_itself_in_the_replay() -> None:
    feed = started("a", "b", "c")
    assert given(feed, (5, "F")) == []
    assert feed.wish() == 2
    assert given(feed, (2, "C"), (3, "D"), (4, "E"), (5, "F")) == [RESTARTED]
    assert feed.wish() == 0
    whole = list(enumerate("ABCDEF"))
    assert given(feed, *whole) == list("ABCDEF")


def test_what_waits_from_an_old_process_is_forgotten() -> None:
    feed = started("a")
    assert given(feed, (2, "c")) == []
    assert given(feed, (0, "A"), (1, "B"), (2, "C")) == [RESTARTED, "A", "B", "C"]

"""What events say of a prompt: intervals, shared hashes, and pages that may have come back unannounced."""

from __future__ import annotations

import pytest

from tierfuzz.events import AllBlocksCleared, Batch, BlockRemoved, BlockStored, KvEvent, Tier
from tierfuzz.eventview import MOST_POSSIBILITIES, EventView, Interval, PrefixView
from tierfuzz.ledger import Ledger

GPU, CPU = "GPU", "CPU_PINNED"
FOUR = (1, 2, 3, 4)


def store(hashes: tuple[int, ...], medium: str = GPU) -> BlockStored:
    """Blocks without parent."""
    return BlockStored(hashes, None, (), 16, medium)


def remove(hashes: tuple[int, ...], medium: str = GPU) -> BlockRemoved:
    """Blocks that left a tier."""
    return BlockRemoved(hashes, medium)


class Seen:
    """A view with its ledger, fed as a worker's judge feeds them."""

    def __init__(self, *namespaces: str, alone: str | None = None) -> None:
        self.view = EventView(Ledger())
        self.view.in_flight = None if alone is None else {alone}
        for namespace in namespaces:
            self.view.begin(namespace, FOUR)

    def tell(self, *events: KvEvent) -> None:
        """Events, each as a batch of its own."""
        for event in events:
            batch = Batch(0, 0.0, 0, (event,))
            self.view.ledger.apply(batch)
            self.view.apply(batch)

    def prefix(self, namespace: str = "") -> PrefixView:
        """The intervals of the prompt of four pages."""
        return self.view.prefix(namespace, FOUR)


def exactly(total: int, device: int) -> PrefixView:
    """Intervals without a doubt."""
    return PrefixView(Interval(total, total), Interval(device, device))


@pytest.mark.parametrize(("pages", "inside"), [(1, False), (2, True), (3, True), (4, False)])
def test_an_interval_holds_its_ends(pages: int, inside: bool) -> None:
    assert Interval(2, 3).holds(pages) is inside


# one namespace -------------------------------------------------------------------------------------
def test_nothing_is_cached_before_any_event() -> None:
    assert Seen("").prefix() == exactly(0, 0)


def test_pages_count_in_whichever_tier_they_are() -> None:
    seen = Seen("")
    seen.tell(store((1, 2, 3)), store((1, 2), CPU), remove((2, 3)), store((3, 4), CPU))
    assert seen.prefix() == exactly(4, 1)


def test_a_prefix_ends_at_the_first_page_that_is_in_no_tier() -> None:
    seen = Seen("")
    seen.tell(store(FOUR), remove((2,)))
    assert seen.prefix() == exactly(1, 1)


def test_a_match_may_use_no_more_than_it_is_asked_for() -> None:
    seen = Seen("")
    seen.tell(store(FOUR))
    assert seen.view.prefix("", FOUR[:2]) == exactly(2, 2)
    assert seen.view.prefix("", ()) == exactly(0, 0)


def test_blocks_that_nobody_asked_for_are_nobodys() -> None:
    seen = Seen()
    seen.tell(store(FOUR), store(FOUR, CPU))
    assert seen.prefix() == exactly(0, 0)
    assert seen.view.owners(1) == ()
    assert Seen("", "a").view.owners(1) == ("", "a")


def test_leading_pages_on_host_end_where_one_is_missing() -> None:
    seen = Seen("")
    seen.tell(store(FOUR), store((1, 2, 4), CPU))
    assert seen.view.leading_on_host("", FOUR) == 2
    assert seen.view.leading_on_host("a", FOUR) == 0


def test_a_clear_takes_everything() -> None:
    seen = Seen("", alone="")
    seen.tell(store(FOUR), store(FOUR, CPU), AllBlocksCleared())
    assert seen.prefix() == exactly(0, 0)
    assert seen.view.on_device(1) == seen.view.on_host(1) == 0


# namespaces that share their hashes ----------------------------------------------------------------
def test_a_copy_of_a_shared_hash_may_be_of_either_namespace() -> None:
    seen = Seen("", "a")
    seen.tell(store(FOUR), store((1, 2), CPU))
    assert seen.view.ambiguous(1)
    for namespace in ("", "a"):
        assert seen.prefix(namespace) == PrefixView(Interval(0, 4), Interval(0, 4))
        assert seen.view.leading_on_host(namespace, FOUR) == 0
    assert seen.prefix("b") == exactly(0, 0)


def test_a_copy_for_each_namespace_leaves_no_doubt() -> None:
    seen = Seen("", "a")
    seen.tell(store(FOUR), store((1, 2)), store((1, 2), CPU), store((1,), CPU))
    for namespace in ("", "a"):
        assert seen.prefix(namespace) == PrefixView(Interval(2, 4), Interval(2, 4))
        assert seen.view.leading_on_host(namespace, FOUR) == 1


def test_a_page_of_one_namespace_is_certain_beside_shared_ones() -> None:
    seen = Seen("")
    seen.view.begin("a", FOUR[2:])
    seen.tell(store(FOUR))
    assert seen.prefix() == PrefixView(Interval(2, 4), Interval(2, 4))


def test_a_store_while_one_request_runs_is_of_its_namespace() -> None:
    seen = Seen("", "a", alone="a")
    seen.tell(store(FOUR), store(FOUR, CPU))
    assert seen.prefix("a") == exactly(4, 4)
    assert seen.prefix("") == exactly(0, 0)


def test_a_store_beside_others_is_of_one_of_those_in_flight() -> None:
    seen = Seen("", "a", "b")
    seen.view.in_flight = {"a", "b"}
    seen.tell(store(FOUR))
    assert seen.prefix("") == exactly(0, 0)
    for namespace in ("a", "b"):
        assert seen.prefix(namespace) == PrefixView(Interval(0, 4), Interval(0, 4))


def test_a_namespace_stores_nothing_that_it_has() -> None:
    seen = Seen("", "a", "b", alone="a")
    seen.tell(store(FOUR))
    seen.view.in_flight = {"a", "b"}
    seen.tell(store(FOUR))
    assert seen.prefix("b") == exactly(4, 4)


def test_the_only_copy_that_can_have_left_is_known() -> None:
    seen = Seen("", "a", alone="a")
    seen.tell(store(FOUR), remove(FOUR))
    assert seen.prefix("a") == exactly(0, 0)


def test_what_was_served_says_whose_copy_is_left() -> None:
    seen = Seen("", "a", alone="a")
    seen.tell(store(FOUR, CPU))
    seen.view.in_flight = {""}
    seen.tell(store(FOUR, CPU), remove(FOUR, CPU))
    seen.view.learn(Tier.HOST, "a", 1)
    assert seen.view.surely_on_host("a", 1)
    assert not seen.view.may_be_on(Tier.HOST, "", 1)
    assert not seen.view.surely_on_host("a", 2)


def test_what_cannot_have_been_served_teaches_nothing() -> None:
    seen = Seen("", "a", alone="a")
    seen.tell(store(FOUR))
    seen.view.learn(Tier.DEVICE, "", 1)
    seen.view.learn(Tier.HOST, "", 1)
    assert seen.prefix("a") == exactly(4, 4)


@pytest.mark.parametrize("first", ["removed", "held"])
def test_an_owner_that_comes_to_light_late_may_have_stored_before(first: str) -> None:
    seen = Seen("", alone="a")
    seen.tell(store(FOUR), store(FOUR))  # the second is of an answer to a request of "a"
    if first == "removed":
        seen.tell(remove(FOUR))
    seen.view.begin("a", FOUR, late=True)
    low = 0 if first == "removed" else 4
    for namespace in ("", "a"):
        assert seen.prefix(namespace) == PrefixView(Interval(low, 4), Interval(low, 4))


def test_two_copies_betray_an_owner_that_is_not_known_yet() -> None:
    seen = Seen("")
    seen.tell(store((1, 2)))
    assert not seen.view.ambiguous(1)
    seen.tell(store((1,)))
    assert seen.view.ambiguous(1)
    assert not seen.view.ambiguous(2)


def test_too_many_possibilities_are_given_up() -> None:
    many = [str(number) for number in range(2 * MOST_POSSIBILITIES)]
    seen = Seen(*many)
    seen.tell(*[store((1,))] * 3, remove((1,)))
    for namespace in many[:3]:
        assert not seen.view.surely_on_device(namespace, 1)
        assert seen.view.may_be_on(Tier.DEVICE, namespace, 1)
    seen.tell(AllBlocksCleared())
    assert not seen.view.may_be_on(Tier.DEVICE, many[0], 1)


def test_after_a_removal_it_is_open_whose_copy_is_left() -> None:
    seen = Seen("", "a", alone="a")
    seen.tell(store(FOUR))
    seen.view.in_flight = {""}
    seen.tell(store(FOUR), remove(FOUR))
    for namespace in ("", "a"):
        assert seen.prefix(namespace) == PrefixView(Interval(0, 4), Interval(0, 4))


def test_where_host_stores_may_be_of_others_they_settle_nothing() -> None:
    seen = Seen("", "a", alone="a")
    seen.view.backs_up_own = False
    seen.tell(store(FOUR, CPU))
    assert not seen.view.surely_on_host("a", 1)
    seen.tell(store(FOUR))
    assert seen.view.surely_on_device("a", 1)


# pages that come back without an event -------------------------------------------------------------
def test_a_recomputed_host_page_may_be_on_device() -> None:
    seen = Seen("")
    seen.tell(store(FOUR, CPU))
    seen.view.rested()
    seen.view.candidates("", (3, 4))
    assert [seen.view.may_be_revived(h) for h in FOUR] == [False, False, True, True]
    assert seen.prefix() == exactly(4, 0)
    seen.view.candidates("", (1, 2))
    assert seen.prefix() == PrefixView(Interval(4, 4), Interval(0, 4))


def test_only_pages_on_host_and_not_on_device_are_candidates() -> None:
    seen = Seen("")
    seen.tell(store((1, 2), CPU), store((2, 3)))
    seen.view.candidates("", FOUR)
    assert [seen.view.may_be_revived(h) for h in FOUR] == [True, False, False, False]


def test_candidates_are_looked_at_again_when_every_event_is_in_hand() -> None:
    seen = Seen("")
    seen.tell(store(FOUR))
    seen.view.candidates("", FOUR)
    seen.tell(store(FOUR, CPU), remove(FOUR))  # late: both were before the request
    assert seen.prefix() == exactly(4, 0)
    seen.view.rested()
    assert seen.prefix() == PrefixView(Interval(4, 4), Interval(0, 4))
    seen.tell(remove(FOUR))
    seen.view.rested()
    assert seen.prefix() == exactly(4, 0)


@pytest.mark.parametrize("event", [store((1,)), remove((1,)), AllBlocksCleared()])
def test_a_device_event_settles_the_doubt(event: KvEvent) -> None:
    seen = Seen("")
    seen.tell(store(FOUR, CPU))
    seen.view.rested()
    seen.view.candidates("", (1,))
    seen.tell(event)
    assert not seen.view.may_be_revived(1)


def test_a_host_event_does_not_settle_it() -> None:
    seen = Seen("")
    seen.tell(store(FOUR, CPU))
    seen.view.candidates("", FOUR)
    seen.tell(remove(FOUR, CPU))
    assert seen.prefix() == PrefixView(Interval(0, 4), Interval(0, 4))


def test_the_device_copy_of_another_namespace_does_not_rule_revival_out() -> None:
    seen = Seen("", "a")
    seen.tell(store(FOUR, CPU), store(FOUR))
    seen.view.candidates("a", FOUR)
    seen.tell(remove(FOUR))  # of either namespace
    assert seen.prefix("a").device == Interval(0, 4)


def test_a_flush_forgets_doubts_and_owners() -> None:
    seen = Seen("", "a")
    seen.tell(store(FOUR, CPU))
    seen.view.candidates("", FOUR)
    seen.view.clear()
    assert not seen.view.may_be_revived(1)
    assert not seen.view.ambiguous(1)


def test_a_page_after_a_loose_end_may_be_on_device() -> None:
    seen = Seen("")
    seen.tell(store(FOUR, CPU), store((1,)))
    seen.view.loosen("", (1,))
    assert seen.prefix() == PrefixView(Interval(4, 4), Interval(1, 2))
    seen.view.clear()
    seen.view.loosen("", ())
    assert seen.prefix() == PrefixView(Interval(0, 1), Interval(0, 1))


def test_a_page_that_was_revived_and_lost_before_its_reply_may_have_been_on_device() -> None:
    seen = Seen("")
    seen.tell(store(FOUR), store(FOUR, CPU), remove(FOUR))
    seen.view.rested()
    assert not seen.view.may_be_revived(1)
    seen.view.begin("", (1,))  # a request comes to the page, which is on host only
    assert seen.view.may_be_revived(1)
    assert not seen.view.may_be_revived(2)
    seen.view.rested()
    assert not seen.view.may_be_revived(1)

"""The history of one worker: what was begun and inserted, and how much was used since."""

from __future__ import annotations

from past import Past, pages_of

from tierfuzz.forecast.history import History, common_prefix, leading_in

PLENTY = 10_000


def test_leading_pages_end_at_the_first_that_is_missing() -> None:
    held = {("", 1), ("", 2), ("", 4), ("a", 3)}
    assert leading_in(held, "", (1, 2, 3, 4)) == 2
    assert leading_in(held, "", (1, 2)) == 2
    assert leading_in(held, "a", (1, 2)) == leading_in(held, "", ()) == 0


def test_a_common_prefix_ends_where_the_prompts_differ_or_one_ends() -> None:
    assert common_prefix((1, 2, 3), (1, 2, 4)) == 2
    assert common_prefix((1, 2), (1, 2, 3)) == 2
    assert common_prefix((1,), (2,)) == common_prefix((), (1,)) == 0


def test_the_reuse_distance_counts_every_branch_used_since_once() -> None:
    past = Past()
    past.ask(pages_of(1, 4))
    past.ask(pages_of(2, 5))
    past.ask(pages_of(3, 6))
    past.ask(pages_of(2, 5))
    assert past.history.newer_pages(1, PLENTY) == 4 + 5 + 6
    assert past.history.newer_pages(2, PLENTY) == 5 + 6
    assert past.history.newer_pages(4, PLENTY) == 5
    assert past.history.newer_pages(5, PLENTY) == 0


def test_a_branch_counts_as_a_whole_when_any_of_it_is_used() -> None:
    past = Past()
    past.ask(pages_of(1, 8))
    past.ask(pages_of(2, 3))
    past.ask(pages_of(1, 4, fork=2, other=1))
    assert past.history.newer_pages(3, PLENTY) == 8 + 2


def test_counting_stops_once_it_is_enough() -> None:
    past = Past()
    past.fill(20)
    assert 30 < past.history.newer_pages(1, 30) < past.history.newer_pages(1, PLENTY) == 160


def test_a_page_was_used_when_its_last_request_began() -> None:
    history = History()
    slow = history.begin("", (1, 2), "slow")
    quick = history.begin("", (5,), "quick")
    history.end("", (5,), "quick")
    history.complete("", (5,), "quick", quick)
    history.end("", (1, 2, 3), "slow")
    history.complete("", (1, 2, 3), "slow", slow)
    assert [history.used["", page] for page in (1, 2, 3, 5)] == [slow, slow, slow, quick]
    # the branch itself may have been used until its request ended
    assert history.newer_pages(quick, PLENTY) == 4


def test_what_did_not_come_to_its_end_may_have_used_nothing() -> None:
    past = Past()
    past.ask(pages_of(1, 4))
    past.ask(pages_of(1, 4), done=False)
    assert {past.history.used["", page] for page in pages_of(1, 4)} == {1}
    assert past.history.newer_pages(2, PLENTY) == 4


def test_pages_are_begun_before_they_are_inserted() -> None:
    past = Past()
    name = past.ask(pages_of(1, 4), done=False)
    assert set(past.history.begun.values()) == {name}
    assert past.history.inserted == {}
    later = past.ask(pages_of(1, 4))
    assert set(past.history.begun.values()) == {name}
    assert set(past.history.inserted.values()) == {later}


def test_outputs_belong_to_the_pages_of_their_request() -> None:
    history = History()
    history.begin("", (1,), "r")
    history.end("", (1, 2, 3), "r")
    assert leading_in(history.begun, "", (1, 2, 3)) == 3
    assert history.roots["", 1].size == 3
    assert history.longest == 4  # and a page that was not finished


def test_namespaces_are_branches_of_their_own() -> None:
    past = Past()
    past.ask(pages_of(1, 4), namespace="a")
    assert leading_in(past.history.begun, "", pages_of(1, 4)) == 0
    past.ask(pages_of(1, 4))
    assert past.history.newer_pages(1, PLENTY) == 8


def test_insertions_are_counted_from_proved_rest_on() -> None:
    past = Past()
    past.ask(pages_of(1, 4), rest=False)
    root = past.history.roots["", pages_of(1, 4)[0]]
    past.ask(pages_of(2, 8), rest=False)
    assert past.history.inserted_after(root) is None
    past.history.rest()
    assert past.history.inserted_after(root) == 0
    past.ask(pages_of(3, 5))
    past.ask(pages_of(3, 5))
    past.ask(pages_of(4, 5), done=False)
    assert past.history.inserted_after(root) == 5


def test_use_of_a_branch_starts_its_count_again() -> None:
    past = Past()
    past.ask(pages_of(1, 4))
    past.fill(3)
    root = past.history.roots["", pages_of(1, 4)[0]]
    assert past.history.inserted_after(root) == 24
    past.ask(pages_of(1, 1), rest=False)
    assert past.history.inserted_after(root) is None
    past.history.rest()
    assert past.history.inserted_after(root) == 0


def test_a_flush_forgets_all_but_what_was_ever_computed() -> None:
    past = Past()
    past.ask(pages_of(1, 4))
    past.history.clear()
    assert not past.history.begun
    assert not past.history.inserted
    assert not past.history.roots
    assert past.history.longest == past.history.newer_pages(0, PLENTY) == 0
    assert leading_in(past.history.ever, "", pages_of(1, 4)) == 4


# what nobody tells of ------------------------------------------------------------------------------
def test_one_page_more_than_begun_may_hang_at_a_loose_end() -> None:
    past = Past()
    past.ask(pages_of(1, 4))
    assert past.history.most("", pages_of(1, 9)) == 4
    past.history.loosen("", pages_of(1, 4))
    assert past.history.most("", pages_of(1, 9)) == 5
    assert past.history.most("", pages_of(1, 4)) == 4
    assert past.history.most("a", pages_of(1, 9)) == 0
    past.history.loosen("a", ())
    assert past.history.most("a", pages_of(1, 9)) == 1


def test_distinct_pages_count_what_nobody_knows_of() -> None:
    past = Past()
    past.ask(pages_of(1, 4))
    past.ask(pages_of(1, 4))
    assert past.history.distinct == 4
    past.history.loosen("", pages_of(1, 4))
    past.history.lose(3)
    assert past.history.distinct == 8
    past.history.clear()
    assert past.history.distinct == 0


def test_the_widest_burst_is_at_least_the_longest_request() -> None:
    past = Past()
    past.ask(pages_of(1, 4))
    assert past.history.widest == past.history.longest == 5
    past.history.together(30)
    past.ask(pages_of(2, 9))
    assert (past.history.longest, past.history.widest) == (10, 30)

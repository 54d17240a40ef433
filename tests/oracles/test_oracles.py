"""Every oracle: a short history in which a planted fault is reported under its slug, and the same without."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from story import CPU, DISK, GPU, PAGE, Story, fresh, remove, store

from tierfuzz.events import AllBlocksCleared, BlockStored, EventFault, KvEvent
from tierfuzz.observation import Observation, TierSplit
from tierfuzz.oracles.registry import ORACLES
from tierfuzz.prompts import tokens_of
from tierfuzz.verdict import Outcome

OF_CONSUMERS = {"router-stale", "router-miss", "wrong-worker", "router-leak"}  # test_oracles_router.py
OF_WORKERS = [slug for slug in ORACLES if slug not in OF_CONSUMERS]
Case = Callable[[bool], Story]
CASES: dict[str, Case] = {}
FOUR = 4 * 16  # tokens of four pages
ON_DEVICE, ON_HOST = TierSplit(device=FOUR), TierSplit(host=FOUR)
IN_STORAGE = TierSplit(storage=FOUR)


def case(slug: str) -> Callable[[Case], Case]:
    """Register the history of an oracle; its argument says whether the fault is planted."""

    def register(tell: Case) -> Case:
        assert slug not in CASES
        CASES[slug] = tell
        return tell

    return register


# forecasts and accounting --------------------------------------------------------------------------
def probed(split: TierSplit | None) -> Story:
    """A prompt is pushed off the device and asked for again."""
    story = Story()
    story.prime("p")
    story.turn_over("p")
    story.ask("p", 4, [remove("filler0", 8), store("p", 4)], split)
    return story


@case("host-miss")
def host_hit_reported_as_device(planted: bool) -> Story:
    return probed(ON_DEVICE if planted else ON_HOST)


@case("prefix-miss")
def held_prefix_recomputed(planted: bool) -> Story:
    return probed(None if planted else ON_HOST)


@case("phantom-hit")
def new_prompt_with_a_hit(planted: bool) -> Story:
    story = Story()
    story.ask("p", 4, fresh("p", 4), ON_DEVICE if planted else None)
    return story


@case("split-sum")
def split_short_of_a_page(planted: bool) -> Story:
    story = Story()
    story.prime("p")
    story.ask("p", 4, (), TierSplit(device=FOUR - 16) if planted else ON_DEVICE, cached=FOUR)
    return story


@case("ledger-accounting")
def device_hit_reported_as_host(planted: bool) -> Story:
    story = Story()
    story.prime("p")
    story.ask("p", 4, (), ON_HOST if planted else ON_DEVICE)
    return story


@case("content")
def other_answer(planted: bool) -> Story:
    story = Story()
    story.prime("p")
    story.ask("p", 4, (), ON_DEVICE, output=8 if planted else 7)
    return story


# events --------------------------------------------------------------------------------------------
@case("event-order")
def host_store_before_device_store(planted: bool) -> Story:
    story = Story()
    events = fresh("p", 4)
    story.ask("p", 4, events[::-1] if planted else events)
    return story


@case("orphan-parent")
def child_of_a_block_that_left(planted: bool) -> Story:
    story = Story()
    story.prime("p")
    gone = [remove("p", 4), remove("p", 4, CPU)] if planted else []
    story.ask("p", 6, [*gone, store("p", 6, GPU, 4), store("p", 6, CPU, 4)], ON_DEVICE)
    return story


@case("advertised-size")
def events_cut_at_another_size(planted: bool) -> Story:
    story = Story(advertised=PAGE // 2 if planted else PAGE)
    story.prime("p")
    return story


@case("unmatched-removal")
def removal_announced_twice(planted: bool) -> Story:
    story = Story()
    story.prime("p")
    story.ask("q", 4, [*fresh("q", 4), *[remove("p", 4)] * (1 + planted)])
    return story


@case("duplicate-store")
def store_announced_twice(planted: bool) -> Story:
    story = Story()
    story.ask("p", 4, [*[store("p", 4)] * (1 + planted), store("p", 4, CPU)])
    return story


@case("unexplained-store")
def store_of_a_block_of_no_prompt(planted: bool) -> Story:
    story = Story()
    strange = BlockStored((12345,), None, (), 16, GPU)
    story.ask("p", 4, [*fresh("p", 4), *[strange] * planted])
    return story


def told_with(slug: str, planted: bool) -> Story:
    """A batch that could be read, or not wholly."""
    story = Story()
    story.say(fresh("p", 4), *[EventFault(slug, "planted")] * planted)
    return story


@case("missing-medium")
def batch_without_medium(planted: bool) -> Story:
    return told_with("missing-medium", planted)


@case("unknown-medium")
def batch_with_a_strange_medium(planted: bool) -> Story:
    return told_with("unknown-medium", planted)


@case("malformed-event")
def batch_of_garbage(planted: bool) -> Story:
    return told_with("wrong-arity", planted)


@case("sequence-gap")
def batches_lost(planted: bool) -> Story:
    story = Story()
    # A fault of a batch comes with its batch, and is not to be counted twice.
    story.judge.finding(EventFault("sequence-gap" if planted else "missing-medium", "planted"))
    return story


# at rest -------------------------------------------------------------------------------------------
@case("over-capacity")
def more_blocks_than_the_pool_has(planted: bool) -> Story:
    story = Story()
    for number in range(8):
        story.prime(f"s{number}", 8)
    gone = [] if planted else [remove("s0", 8)]
    story.ask("p", 4, [*gone, *fresh("p", 4)])
    return story


@case("clear-scope")
def blocks_claimed_after_a_flush(planted: bool) -> Story:
    story = Story()
    story.prime("p")
    story.flush(announced=not planted)
    return story


@case("no-backup")
def page_without_a_host_copy(planted: bool) -> Story:
    story = Story()
    story.ask("p", 4, [store("p", 4)] if planted else fresh("p", 4))
    return story


@case("early-backup")
def page_copied_at_its_first_request(planted: bool) -> Story:
    story = Story(policy="write_through_selective")
    story.ask("p", 4, fresh("p", 4) if planted else [store("p", 4)])
    story.ask("p", 4, [] if planted else [store("p", 4, CPU)], ON_DEVICE)
    return story


@case("leak-at-rest")
def request_still_running(planted: bool) -> Story:
    story = Story()
    story.prime("p")
    levels = {
        "sglang:num_running_reqs": float(planted),
        "sglang:num_queue_reqs": 0.0,
        "sglang:kv_available_tokens": 60 * 16.0,
        "sglang:kv_evictable_tokens": 4 * 16.0,
        "sglang:hicache_host_used_tokens": 4 * 16.0,
    }
    story.judge.gauges(levels)
    return story


@case("pool-levels")
def more_free_than_the_pool_has(planted: bool) -> Story:
    story = Story()
    story.prime("p")
    levels = {
        "sglang:kv_available_tokens": (60 + 8 * planted) * 16.0,
        "sglang:kv_evictable_tokens": 4 * 16.0,
        "sglang:hicache_host_used_tokens": 4 * 16.0,
    }
    story.judge.gauges(levels)
    return story


# bursts --------------------------------------------------------------------------------------------
@case("overlap-miss")
def prefix_recomputed_in_a_burst(planted: bool) -> Story:
    story = Story()
    story.prime("p")
    story.burst([("p", 4, None if planted else ON_DEVICE), ("q", 4, None)], fresh("q", 4))
    return story


@case("overlap-excess")
def burst_served_what_had_left(planted: bool) -> Story:
    story = Story()
    story.prime("p")
    story.ask("q", 4, [*fresh("q", 4), remove("p", 4), remove("p", 4, CPU)])
    story.burst([("p", 4, ON_DEVICE if planted else None), ("r", 4, None)], [*fresh("p", 4), *fresh("r", 4)])
    return story


def burst_over_host(split: TierSplit, loaded: bool) -> Story:
    """Pages that are on host only are asked for in a burst."""
    story = Story()
    story.prime("p")
    story.ask("q", 4, [remove("p", 4), *fresh("q", 4)])
    load = [store("p", 4)] if loaded else []
    story.burst([("p", 4, split), ("r", 4, None)], [*load, *fresh("r", 4)])
    return story


@case("load-accounting")
def load_without_events(planted: bool) -> Story:
    return burst_over_host(ON_HOST, loaded=not planted)


@case("host-unseen")
def load_reported_as_device(planted: bool) -> Story:
    return burst_over_host(ON_DEVICE if planted else ON_HOST, loaded=True)


@case("insert-bound")
def last_page_never_announced(planted: bool) -> Story:
    story = Story()
    pages = 3 if planted else 4
    story.burst([("p", 4, None), ("q", 4, None)], [*fresh("p", 4), *fresh("q", pages)])
    return story


# storage -------------------------------------------------------------------------------------------
def fetched(threshold: int, split: TierSplit | None, owner: str | None = None, primed: bool = True) -> Story:
    """A prompt is written to storage, the worker flushed, and the prompt asked for again."""
    story = Story(storage_threshold=threshold)
    if primed:
        story.ask("p", 4, fresh("p", 4), namespace=owner)
    story.flush()
    story.ask("p", 4, [store("p", 4, CPU), store("p", 4)], split)
    return story


@case("storage-miss")
def written_pages_not_fetched(planted: bool) -> Story:
    return fetched(32, None if planted else IN_STORAGE)


@case("storage-phantom")
def fetched_but_never_written(planted: bool) -> Story:
    return fetched(32, IN_STORAGE if planted else None, primed=False)


@case("storage-below-threshold")
def prefetch_too_short(planted: bool) -> Story:
    return fetched(128, IN_STORAGE if planted else None)


@case("namespace-leak")
def fetched_from_another_namespace(planted: bool) -> Story:
    return fetched(32, IN_STORAGE if planted else None, owner="a")


def claimed(split: TierSplit | None, *later: KvEvent) -> Story:
    """Events claim a prompt in storage; it leaves device and host and, after `later`, is asked for again."""
    story = Story(storage_threshold=32)
    story.ask("p", 4, [*fresh("p", 4), store("p", 4, DISK)])
    story.ask("q", 4, [remove("p", 4), remove("p", 4, CPU), *fresh("q", 4), *later])
    story.ask("p", 4, [store("p", 4, CPU), store("p", 4)], split)
    return story


@case("storage-claim")
def claimed_pages_not_served_from_storage(planted: bool) -> Story:
    return claimed(None if planted else IN_STORAGE)


@pytest.mark.parametrize("gone", [remove("p", 4, DISK), AllBlocksCleared()], ids=["removed", "cleared"])
def test_a_claim_that_was_taken_back_is_not_held_against_the_worker(gone: KvEvent) -> None:
    story = claimed(None, gone)
    assert story.violations()["storage-claim"] == 0
    assert story.judge.docket.held["storage-claim"] == 0


def test_storage_is_written_and_emptied_by_others_too() -> None:
    story = Story(storage_threshold=32)
    story.ask("p", 4, [*fresh("p", 4), store("p", 4, DISK)])
    story.say([store("p", 4, DISK), remove("p", 4, DISK), remove("p", 4, DISK), remove("p", 4, DISK)])
    assert story.violations() == {}


def test_a_restart_attaches_storage_that_was_detached_before() -> None:
    story = Story(storage_threshold=32)
    story.judge.reconfigured(attached=False)
    story.judge.restarted("restart")
    story.say([AllBlocksCleared()])
    story.judge.rested()
    story.ask("p", 4, fresh("p", 4))
    story.flush()
    story.ask("p", 4, [store("p", 4, CPU), store("p", 4)], IN_STORAGE)
    assert story.violations() == {}


# drivers -------------------------------------------------------------------------------------------
@case("hang")
def no_answer_in_time(planted: bool) -> Story:
    return driven("hang", planted)


@case("crash")
def process_ended(planted: bool) -> Story:
    return driven("crash", planted)


def driven(slug: str, planted: bool) -> Story:
    """A request after which the drivers may have found something."""
    story = Story()
    story.prime("p")
    if planted:
        story.judge.transport(slug, "planted")
    return story


# the tests -----------------------------------------------------------------------------------------
def test_every_oracle_has_a_case() -> None:
    assert set(CASES) == set(OF_WORKERS)


@pytest.mark.parametrize("slug", OF_WORKERS)
def test_a_planted_fault_is_reported(slug: str) -> None:
    story = CASES[slug](True)
    assert story.violations()[slug] > 0
    kept = [verdict for verdict in story.judge.take_verdicts() if verdict.oracle == slug]
    assert all(verdict.outcome is Outcome.VIOLATION and verdict.message for verdict in kept)
    assert story.judge.take_verdicts() == []


@pytest.mark.parametrize("slug", OF_WORKERS)
def test_the_same_history_without_the_fault_is_silent(slug: str) -> None:
    story = CASES[slug](False)
    assert story.violations() == {}
    # What is never counted as held was never asked; a gap is only ever found.
    assert story.judge.docket.held[slug] > 0 or slug == "sequence-gap"


def test_a_hit_from_before_a_flush_is_one_of_scope() -> None:
    story = Story()
    story.prime("p")
    story.flush()
    story.ask("p", 4, fresh("p", 4), ON_DEVICE)
    assert story.violations()["clear-scope"] == 1
    assert "phantom-hit" not in story.violations()


def test_a_restart_forgets_events_and_history() -> None:
    story = Story()
    story.prime("p")
    story.judge.restarted("restart")
    story.prime("p")
    assert story.violations() == {}


def test_nothing_is_forecast_while_copies_are_held_back() -> None:
    story = Story()
    story.prime("p")
    story.turn_over("p")
    assert [known.pages for known in story.judge.host_only()] == [4]
    story.judge.holding(True)
    assert story.judge.host_only() == []
    story.ask("p", 4, [remove("filler0", 8), store("p", 4)])
    assert story.violations() == {}


def test_a_failed_request_is_judged_by_nothing_but_its_failure() -> None:
    story = Story()
    asked = story.generate("p", 4)
    tokens = tokens_of(asked.prompt)
    story.judge.expect(asked, tokens, at_rest=True)
    failed = Observation(
        asked.id, 0, None, tokens, 1, "failed", 0.0, 0.0, prompt_tokens=68, cached_tokens=FOUR, error="reset"
    )
    story.judge.replied(asked, failed)
    assert story.violations() == {}
    assert story.judge.docket.held["phantom-hit"] == story.judge.docket.held["crash"] == 0

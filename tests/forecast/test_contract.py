"""The contract forecast: what it claims, when it claims nothing, and why."""

from __future__ import annotations

import msgspec
import pytest
from past import FLEET, PAGE, Past, pages_of

from tierfuzz.events import Tier
from tierfuzz.forecast.contract import Forecast
from tierfuzz.observation import Observation, TierSplit
from tierfuzz.oracles.judge import Judge
from tierfuzz.program import FleetConfig, Generate
from tierfuzz.prompts import Piece, tokens_of

FOUR = pages_of(1, 4)
OFF_AFTER = 8  # fillers of 8 pages that turn the device pool of 64 over
FITS = (129 - 4) // 8  # fillers that the host pool has room for beside four pages
# Once it is full, branch and fillers may take what it leaves beside two nodes of 9 pages.
HELD_FOR = (129 - 2 * 9 - 4) // 8


def nothing(limit: int, most: int) -> Forecast:
    """A forecast without lower bounds."""
    return Forecast(limit, most, 0, 0)


# bounds --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("tokens", "logprob_start", "pages"),
    [
        (1, None, 0),
        (16, None, 0),
        (17, None, 1),
        (64, None, 3),
        (65, None, 4),
        (65, -1, 4),
        (65, 0, 0),
        (65, 15, 0),
        (65, 16, 1),
        (65, 63, 3),
        (65, 64, 4),
        (65, 65, 4),
    ],
)
def test_the_last_token_and_those_with_logprobs_are_computed(
    tokens: int, logprob_start: int | None, pages: int
) -> None:
    assert Past().contract.limit(tokens, logprob_start) == pages


def test_nothing_is_cached_of_what_was_never_begun() -> None:
    past = Past()
    past.ask(pages_of(2, 4))
    assert past.forecast(FOUR) == nothing(4, 0)


def test_what_was_begun_bounds_a_hit_from_above_and_what_was_done_from_below() -> None:
    past = Past()
    past.ask(FOUR[:3])
    past.ask(FOUR, done=False)
    found = past.forecast(FOUR)
    assert (found.most, found.held) == (4, 3)


def test_both_bounds_end_where_a_match_must() -> None:
    past = Past()
    past.ask(FOUR)
    found = past.forecast(FOUR, logprob_start=2 * PAGE + 3)
    assert (found.limit, found.most, found.held) == (2, 2, 2)


def test_a_namespace_is_served_nothing_of_another() -> None:
    past = Past()
    past.ask(FOUR, namespace="a")
    assert past.forecast(FOUR) == nothing(4, 0)
    assert past.forecast(FOUR).elsewhere == 4
    assert past.forecast(FOUR, namespace="a").held == 4


# all fits ------------------------------------------------------------------------------------------
def test_nothing_leaves_the_host_while_all_pages_fit() -> None:
    past = Past()
    past.ask(FOUR)
    past.fill(FITS)
    assert past.contract.never_full
    assert past.forecast(FOUR).host_only == 4
    past.fill(1, first=900)
    assert not past.contract.never_full
    assert past.forecast(FOUR) == nothing(4, 4)


def test_pages_that_nobody_knows_of_take_room_too() -> None:
    past = Past()
    past.ask(FOUR)
    past.fill(FITS)
    past.history.lose(1)
    assert past.forecast(FOUR).held == 4
    past.history.lose(1)
    past.history.loosen("", FOUR)
    past.history.lose(129 - 4 - 8 * FITS - 3)
    assert past.forecast(FOUR).held == 4
    past.history.lose(1)
    assert past.forecast(FOUR).held == 0


# reuse distance ------------------------------------------------------------------------------------
def full() -> Past:
    """A worker whose host pool has been filled before."""
    past = Past()
    past.fill(FITS + 1, first=1000)
    return past


def test_a_prefix_is_held_while_few_others_were_used() -> None:
    past = full()
    past.ask(FOUR)
    past.fill(HELD_FOR)
    assert past.forecast(FOUR).held == 4
    past.fill(1, first=900)
    assert past.forecast(FOUR) == nothing(4, 4)


def test_longer_prompts_leave_less_to_claim() -> None:
    past = full()
    past.ask(FOUR)
    past.fill(HELD_FOR - 3)
    assert past.forecast(FOUR).held == 4
    past.ask(pages_of(101, 20))
    assert past.forecast(FOUR).held == 0


def test_requests_that_overlap_leave_less_to_claim() -> None:
    past = full()
    past.ask(FOUR)
    past.fill(HELD_FOR)
    past.history.together(9)
    assert past.forecast(FOUR).held == 4
    past.history.together(30)
    assert past.forecast(FOUR).held == 0


def test_use_makes_a_prefix_young_again() -> None:
    past = full()
    past.ask(FOUR)
    past.fill(HELD_FOR)
    past.ask(FOUR)
    past.fill(HELD_FOR, first=500)
    assert past.forecast(FOUR).held == 4


def test_a_request_that_was_aborted_makes_nothing_young() -> None:
    past = full()
    past.ask(FOUR)
    past.fill(HELD_FOR)
    past.ask(FOUR, done=False)
    past.fill(1, first=900)
    assert past.forecast(FOUR).held == 0


def test_an_old_page_under_a_branch_that_was_just_used_is_not_claimed() -> None:
    past = full()
    past.ask(pages_of(1, 8))
    past.fill(HELD_FOR)
    past.ask(pages_of(1, 4, fork=2, other=1))
    found = past.forecast(pages_of(1, 8))
    assert (found.most, found.held) == (8, 2)


def test_fillers_that_were_aborted_may_have_evicted_all_the_same() -> None:
    past = full()
    past.ask(FOUR)
    for number in range(HELD_FOR + 1):
        past.ask(pages_of(100 + number, 8), done=False)
    assert past.forecast(FOUR).held == 0


# forced off the device -----------------------------------------------------------------------------
def test_a_branch_is_off_the_device_once_the_pool_was_inserted_after_it() -> None:
    past = Past()
    past.ask(FOUR)
    past.fill(OFF_AFTER - 1)
    assert (past.forecast(FOUR).held, past.forecast(FOUR).host_only) == (4, 0)
    past.fill(1, first=900)
    assert (past.forecast(FOUR).held, past.forecast(FOUR).host_only) == (4, 4)


def test_use_of_another_leaf_keeps_a_branch_possible_on_the_device() -> None:
    past = Past()
    past.ask(FOUR)
    past.fill(OFF_AFTER)
    past.ask(pages_of(1, 4, fork=1, other=1))
    assert past.forecast(FOUR).held == 4
    assert past.forecast(FOUR).host_only == 0


def test_insertions_before_rest_was_proved_do_not_force_a_branch_off() -> None:
    past = Past()
    past.ask(FOUR, rest=False)
    for number in range(OFF_AFTER):
        past.ask(pages_of(100 + number, 8), rest=False)
    assert past.forecast(FOUR) == nothing(4, 4)
    past.history.rest()
    assert (past.forecast(FOUR).held, past.forecast(FOUR).host_only) == (4, 0)


# no claims -----------------------------------------------------------------------------------------
def primed(fleet: FleetConfig) -> Past:
    """A prompt that the default fleet must hold on host only."""
    past = Past(fleet)
    past.ask(FOUR)
    past.fill(OFF_AFTER)
    return past


def test_the_default_fleet_makes_claims() -> None:
    past = primed(FLEET)
    assert past.contract.claims
    assert past.forecast(FOUR).host_only == 4


def test_small_pages_make_no_claims() -> None:
    past = primed(FleetConfig(page_size=8, device_tokens=64 * 8, host_ratio=2.0))
    assert not past.contract.claims
    assert past.forecast(FOUR) == nothing(4, 4)


def test_a_host_pool_below_the_device_pool_makes_no_claims() -> None:
    past = primed(FleetConfig(page_size=PAGE, device_tokens=64 * PAGE, host_ratio=0.9))
    assert not past.contract.claims
    assert past.forecast(FOUR) == nothing(4, 4)


def test_nothing_is_claimed_of_a_worker_that_is_not_at_rest() -> None:
    assert primed(FLEET).forecast(FOUR, quiet=False) == nothing(4, 4)


def test_selective_claims_what_events_announced_on_host() -> None:
    past = primed(msgspec.structs.replace(FLEET, policy="write_through_selective"))
    assert past.forecast(FOUR) == nothing(4, 4)
    assert past.forecast(FOUR, announced=2).host_only == 2
    assert past.forecast(FOUR, announced=9).host_only == 4


@pytest.mark.parametrize("policy", ["write_through", "write_back"])
def test_the_other_policies_need_no_announcement(policy: str) -> None:
    fleet = msgspec.convert({"policy": policy, "device_tokens": 64 * PAGE}, FleetConfig)
    assert primed(fleet).forecast(FOUR).host_only == 4


def test_a_flush_ends_every_claim() -> None:
    past = primed(FLEET)
    past.history.clear()
    assert past.forecast(FOUR) == nothing(4, 0)


# reasons -------------------------------------------------------------------------------------------
def test_every_must_has_its_reasons() -> None:
    past = Past()
    name = past.ask(FOUR)
    found = past.forecast(FOUR)
    assert found.held
    inserted, fits = found.reasons
    assert f"pages 0..3 were inserted by {name}" in inserted
    assert "4 distinct pages were computed since the last flush" in fits
    past.fill(OFF_AFTER)
    off = past.forecast(FOUR).reasons
    assert len(off) == 3
    assert f"{8 * OFF_AFTER} other pages were inserted since rest after {name}" in off[-1]


def test_a_full_host_pool_is_a_reason_to_count_what_was_used_since() -> None:
    past = full()
    past.ask(FOUR)
    past.fill(2)
    used = past.forecast(FOUR).reasons[1]
    assert "at most 20 pages were used since; the host pool has 129, of which 18" in used


def test_a_forecast_explains_itself() -> None:
    text = primed(FLEET).forecast(FOUR).explain()
    assert text.startswith(
        "at most 4 of 4 pages can be cached; at least 4 pages must still be held; 4 pages must"
    )
    assert text.count("\n  because ") == 3
    assert Past().forecast(FOUR).explain() == "at most 0 of 4 pages can be cached"


def test_chances_by_tier_and_page() -> None:
    sure = Forecast(limit=4, most=3, held=2, host_only=2)
    assert [sure.chance(Tier.HOST, page) for page in range(4)] == ["must", "must", "may", "must not"]
    assert [sure.chance(Tier.DEVICE, page) for page in range(4)] == ["must not"] * 4
    assert Forecast(4, 3, 2, 0).chance(Tier.DEVICE, 0) == "may"


def test_no_claim_has_no_reasons() -> None:
    assert primed(FLEET).forecast(FOUR, quiet=False).reasons == ()
    assert Past().forecast(FOUR).reasons == ()


# bursts --------------------------------------------------------------------------------------------
def asked(name: str, *pieces: Piece, namespace: str | None = None) -> Generate:
    """One request of a burst, for one output."""
    return Generate(name, 0, pieces, 1, "repeat", namespace)


def reported(requests: list[Generate], hit: Generate, pages: int) -> int:
    """Phantom hits that a judge sees when one request of a burst reports so many pages as cached."""
    judge = Judge(FLEET, 0)
    judge.expect_together([(one, tokens_of(one.prompt)) for one in requests])
    cached = pages * PAGE
    seen = Observation(
        hit.id,
        0,
        hit.namespace,
        tokens_of(hit.prompt),
        1,
        "ok",
        0.0,
        0.0,
        (7,),
        prompt_tokens=len(tokens_of(hit.prompt)),
        cached_tokens=cached,
        split=TierSplit(device=cached),
    )
    judge.replied(hit, seen)
    return judge.docket.seen["violation:phantom-hit"]


def test_a_request_may_be_served_what_its_mates_compute() -> None:
    first = asked("first", Piece("s", 0, 100))
    second = asked("second", Piece("s", 0, 3 * PAGE), Piece("t", 0, 90))
    for hit in (first, second):
        assert reported([first, second], hit, 3) == 0
        assert reported([first, second], hit, 4) == 1


def test_a_mate_is_no_reason_to_compute_no_token() -> None:
    twins = [asked(name, Piece("s", 0, 4 * PAGE)) for name in ("first", "second")]
    assert reported(twins, twins[0], 3) == 0
    assert reported(twins, twins[0], 4) == 1


def test_a_request_may_be_served_what_a_mate_generates() -> None:
    first = Generate("first", 0, (Piece("s", 0, 3 * PAGE),), 2 * PAGE)
    second = asked("second", Piece("s", 0, 3 * PAGE), Piece("t", 0, 90))
    assert reported([first, second], second, 5) == 0
    assert reported([first, second], second, 6) == 1


def test_mates_of_another_namespace_bring_nothing() -> None:
    first = asked("first", Piece("s", 0, 100))
    other = asked("other", Piece("s", 0, 100), namespace="a")
    assert reported([first, other], first, 1) == 1

"""Checks at rest: levels against pools, and backups where the host is smaller than the device."""

from __future__ import annotations

import pytest
from story import CPU, GPU, Story, fresh, remove, store

HOST_BELOW_DEVICE = 0.5
SOUND = {
    "sglang:kv_available_tokens": 60 * 16.0,
    "sglang:kv_evictable_tokens": 4 * 16.0,
    "sglang:hicache_host_used_tokens": 4 * 16.0,
}


def levels(**changed: float) -> dict[str, float]:
    """Levels after one prompt of four pages, some of them changed."""
    return SOUND | {f"sglang:{name}": value for name, value in changed.items()}


@pytest.mark.parametrize(
    "changed",
    [
        {"kv_available_tokens": 65 * 16.0},
        {"kv_available_tokens": -16.0},
        {"kv_evictable_tokens": 5 * 16.0},
        {"hicache_host_used_tokens": -16.0},
        {"hicache_host_used_tokens": 130 * 16.0},
    ],
)
def test_levels_that_fit_no_pool_are_reported(changed: dict[str, float]) -> None:
    story = Story()
    story.prime("p")
    story.judge.gauges(levels(**changed))
    assert story.violations()["pool-levels"] == 1


def test_levels_that_fit_and_levels_that_are_not_told_are_fine() -> None:
    story = Story()
    story.prime("p")
    story.judge.gauges(SOUND)
    assert story.judge.docket.held["pool-levels"] == 1
    story.judge.gauges({})
    assert story.violations() == {}
    assert story.judge.docket.held["pool-levels"] == 1


def test_on_a_small_host_the_newest_request_must_have_its_copy() -> None:
    story = Story(HOST_BELOW_DEVICE)
    story.prime("p")
    story.ask("q", 4, [store("q", 4)])
    assert story.violations() == {"no-backup": 1}


def test_on_a_small_host_older_copies_may_be_gone() -> None:
    story = Story(HOST_BELOW_DEVICE)
    story.prime("p")
    story.ask("q", 4, [remove("p", 4, CPU), *fresh("q", 4)])
    assert story.violations() == {}
    assert story.judge.docket.held["no-backup"] == 2


def test_on_a_small_host_nothing_is_said_of_requests_that_overlap_or_are_too_long() -> None:
    story = Story(HOST_BELOW_DEVICE)
    story.burst([("p", 4, None), ("q", 4, None)], [store("p", 4), store("q", 4)])
    story.ask("r", 33, [store("r", 33, GPU)])
    assert story.violations() == {}
    assert story.judge.docket.held["no-backup"] == 0


def test_on_a_small_host_write_back_owes_no_copy() -> None:
    story = Story(HOST_BELOW_DEVICE, policy="write_back")
    story.ask("p", 4, fresh("p", 4)[:1])
    assert story.violations() == {}

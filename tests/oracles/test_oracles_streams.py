"""Host copies leave children first: a copy whose parent is gone is out of reach."""

from __future__ import annotations

from itertools import pairwise

import pytest
from story import CPU, Story, hashes_of, remove

from tierfuzz.events import BlockRemoved


def demoted(policy: str = "write_through") -> Story:
    """Four pages that are on host only."""
    story = Story(policy=policy)  # type: ignore[arg-type]
    story.prime("p")
    story.say([remove("p", 4)])
    return story


def host_removal(first: int, last: int) -> BlockRemoved:
    """Pages first..last-1 leave the host."""
    return BlockRemoved(hashes_of("p", 4)[first:last], CPU)


def test_a_parent_that_leaves_the_host_before_its_child_is_reported() -> None:
    story = demoted()
    story.say([host_removal(0, 2)])
    assert story.violations() == {"event-order": 1}


@pytest.mark.parametrize("cuts", [(4, 0), (4, 2, 0), (4, 3, 2, 1, 0)])
def test_children_first_or_all_at_once_is_fine(cuts: tuple[int, ...]) -> None:
    story = demoted()
    for last, first in pairwise(cuts):
        story.say([host_removal(first, last)])
    assert story.violations() == {}
    assert story.judge.docket.held["event-order"] == len(cuts)  # one of them is the host store


def test_after_a_flush_old_children_are_forgotten() -> None:
    story = demoted()
    story.flush()
    story.prime("p", 2)
    story.say([remove("p", 2), remove("p", 2, CPU)])
    assert story.violations() == {}


def test_write_back_may_announce_a_lost_subtree_from_its_top() -> None:
    story = demoted("write_back")
    before = story.violations()["event-order"]
    story.say([host_removal(0, 2), host_removal(2, 4)])
    assert story.violations()["event-order"] == before

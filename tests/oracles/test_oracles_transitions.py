"""Ways of blocks between tiers, from events."""

from __future__ import annotations

from collections import Counter

from tierfuzz.events import AllBlocksCleared, BlockRemoved, BlockStored, KvEvent
from tierfuzz.oracles.transitions import TRANSITIONS, Transitions

GPU, CPU, DISK = "GPU", "CPU_PINNED", "DISK"


def store(medium: str, *blocks: int) -> BlockStored:
    return BlockStored(blocks, None, (), 16, medium)


def remove(medium: str, *blocks: int) -> BlockRemoved:
    return BlockRemoved(blocks, medium)


def reached(*events: KvEvent) -> Counter[str]:
    reach: Counter[str] = Counter()
    transitions = Transitions(reach)
    for event in events:
        transitions.follow(event)
    return reach


def test_a_block_that_is_backed_up_demoted_loaded_and_evicted() -> None:
    there = (store(GPU, 1), store(CPU, 1), remove(GPU, 1), store(GPU, 1))
    back = (remove(CPU, 1), remove(GPU, 1), store(CPU, 1), remove(CPU, 1))
    assert reached(*there, *back) == Counter(dict.fromkeys(TRANSITIONS, 1))


def test_each_block_of_an_event_counts() -> None:
    assert reached(store(GPU, 1, 2, 3), remove(GPU, 2)) == {"none to device": 3, "device to none": 1}


def test_what_changes_nothing_and_other_tiers_do_not_count() -> None:
    assert reached(store(GPU, 1), store(GPU, 1), remove(CPU, 1), store(DISK, 2)) == {"none to device": 1}


def test_after_a_clear_everything_comes_anew() -> None:
    assert reached(store(CPU, 1), AllBlocksCleared(), store(GPU, 1)) == {
        "none to host": 1,
        "none to device": 1,
    }

"""Blocks of another run: translated by their place in prompt and answer, and only where they differ."""

from __future__ import annotations

from tierfuzz.events import AllBlocksCleared, BlockRemoved, BlockStored
from tierfuzz.hashing import page_hashes
from tierfuzz.translation import Translation

PROMPT = tuple(range(1, 7))  # a page and a half of four
HERE, RECORDED = (7, 8, 9, 10, 11), (17, 18, 19, 20, 21)


def hashes(outputs: tuple[int, ...]) -> tuple[int, ...]:
    """Blocks of the prompt and an answer."""
    return page_hashes((*PROMPT, *outputs), 4)


def test_blocks_with_answer_tokens_become_the_recorded_ones() -> None:
    translation = Translation(4)
    translation.learn(PROMPT, HERE, RECORDED)
    mine, theirs = hashes(HERE), hashes(RECORDED)
    assert mine[0] == theirs[0]
    assert mine[1] != theirs[1]
    stored = BlockStored(mine[1:], mine[0], (), 4, "GPU", None)
    assert translation.event(stored) == BlockStored(theirs[1:], theirs[0], (), 4, "GPU", None)
    assert translation.event(BlockRemoved(mine, "CPU_PINNED")) == BlockRemoved(theirs, "CPU_PINNED")


def test_a_parent_is_translated_too() -> None:
    translation = Translation(4)
    translation.learn(PROMPT, HERE, RECORDED)
    stored = BlockStored((99,), hashes(HERE)[1], (), 4, "GPU", None)
    assert translation.event(stored) == BlockStored((99,), hashes(RECORDED)[1], (), 4, "GPU", None)


def test_what_is_not_known_stays_as_it_is() -> None:
    translation = Translation(4)
    translation.learn(PROMPT, HERE, HERE)
    stored = BlockStored(hashes(HERE), None, (), 4, "GPU", None)
    assert translation.event(stored) == stored
    assert translation.event(AllBlocksCleared()) == AllBlocksCleared()

"""Prompts as drawn: lengths inside their bounds and at page borders, forks that share, whole pages."""

from __future__ import annotations

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from tierfuzz.prompts import Piece, tokens_of
from tierfuzz.strategies import prompts

MOST, PAGE = 170, 16
PIECES = (Piece("A", 0, 40), Piece("B", 5, 25))


@given(prompts.LENGTHS, st.integers(1, 100), st.integers(1, 1000))
def test_a_length_is_between_one_token_and_the_most(length: prompts.Length, page: int, most: int) -> None:
    assert 1 <= prompts.tokens_in(length, page, most) <= most


@pytest.mark.parametrize("wanted", [1, PAGE - 1, PAGE, PAGE + 1, PAGE + 3, 9 * PAGE, MOST])
def test_page_borders_and_both_ends_can_be_drawn(wanted: int) -> None:
    find(
        prompts.LENGTHS,
        lambda length: prompts.tokens_in(length, PAGE, MOST) == wanted,
        settings=settings(max_examples=5000, database=None, derandomize=True),
    )


def test_outputs_cross_a_page_border_or_ask_for_nothing() -> None:
    asked = {prompts.outputs_in(pair, PAGE) for pair in ((0, 0), (0, 1), (1, 0), (1, 3))}
    assert asked == {0, 1, PAGE, PAGE + 3}


@given(prompts.SIZES, prompts.SIZES)
def test_a_fork_shares_a_proper_part_and_goes_on_alone(at: int, tail: int) -> None:
    forked = tokens_of(prompts.fork(PIECES, "X", PAGE, at, tail))
    origin = tokens_of(PIECES)
    shared = sum(len(piece) for piece in prompts.fork(PIECES, "X", PAGE, at, tail)[:-1])
    assert 1 <= shared < len(origin)
    assert forked[:shared] == origin[:shared]
    assert 1 <= len(forked) - shared <= 2 * PAGE


def test_a_prompt_of_one_token_is_forked_after_it() -> None:
    (kept, tail) = prompts.fork((Piece("A", 0, 1),), "X", PAGE, 7, 0)
    assert (kept, tail) == (Piece("A", 0, 1), Piece("X", 0, 1))


@given(st.integers(0, 70))
def test_a_cut_is_a_prefix(length: int) -> None:
    assert tokens_of(prompts.cut(PIECES, length)) == tokens_of(PIECES)[:length]


def test_exact_cuts_to_whole_pages_across_pieces() -> None:
    assert prompts.exact(PIECES, PAGE) == (Piece("A", 0, 40), Piece("B", 5, 13))
    assert prompts.exact(PIECES, 100) == ()

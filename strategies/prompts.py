"""Prompts: lengths around page borders, shared streams, forks and continuations.

A strategy draws plain values that fit every fleet, and a function makes a prompt of them for one fleet.
Strategies are thus made once: one that is made anew for each operation costs ten times the draw itself.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tierfuzz.prompts import Piece

SHARED_STREAMS = 5
Prompt = tuple[Piece, ...]
Length = tuple[int, int | None]  # size, and tokens more than whole pages (None: size counts tokens)
Source = int | None  # number of a shared stream, or None for a fresh one
Outputs = tuple[int, int]  # whole pages, and tokens more

SIZES = st.integers(0, 4095)
# The simplest is a page and a token: the last token is always computed (5.1), so one page alone cannot hit.
LENGTHS = st.tuples(SIZES, st.sampled_from((1, 0, -1, 3, None, None, None, None)))
SHARED = st.integers(0, SHARED_STREAMS - 1)
SOURCES = st.sampled_from((*[None] * SHARED_STREAMS, *range(SHARED_STREAMS)))
# 0 and 1 take ways of their own, a page and more crosses a border
OUTPUTS = st.sampled_from(((0, 1), (0, 2), (0, 5), (0, 0), (0, 3), (1, 0), (1, 3)))


def tokens_in(length: Length, page_size: int, most: int) -> int:
    """Prompt length in tokens, 1..most: often whole pages, one less or one more."""
    size, near = length
    if near is None:
        return 1 + size % most
    pages = 1 + size % max(1, most // page_size - 1)
    return max(1, min(pages * page_size + near, most))


def outputs_in(outputs: Outputs, page_size: int) -> int:
    """How many tokens to ask for."""
    pages, more = outputs
    return pages * page_size + more


def prompt_of(source: Source, fresh: str, tokens: int) -> Prompt:
    """The first tokens of a shared stream, or of the stream `fresh` that nobody else uses."""
    return (Piece(fresh if source is None else f"s{source}", 0, tokens),)


def cut(pieces: Prompt, length: int) -> Prompt:
    """The first `length` tokens of a prompt."""
    kept: list[Piece] = []
    for piece in pieces:
        take = min(len(piece), length)
        if take:
            kept.append(Piece(piece.stream, piece.start, piece.start + take))
        length -= take
    return tuple(kept)


def length_of(pieces: Prompt) -> int:
    """Tokens of a prompt, if its pieces of outputs are complete."""
    return sum(len(piece) for piece in pieces)


def fork(pieces: Prompt, stream: str, page_size: int, at: int, tail: int) -> Prompt:
    """A prompt that shares 1.. tokens of `pieces` and goes on with one or two pages of its own stream."""
    shared = 1 + at % max(1, length_of(pieces) - 1)
    return (*cut(pieces, shared), Piece(stream, 0, 1 + tail % (2 * page_size)))


def twig(pieces: Prompt, stream: str, page_size: int, at: int, tail: int) -> Prompt:
    """A prompt that shares some whole pages of `pieces`, not all, and goes on for `tail` tokens."""
    pages = length_of(pieces) // page_size
    shared = page_size * (1 + at % max(1, pages - 1))
    return (*cut(pieces, shared), Piece(stream, 0, tail))


def exact(pieces: Prompt, page_size: int) -> Prompt:
    """The longest part of a prompt that is a whole number of pages; () when it has no whole page."""
    return cut(pieces, length_of(pieces) // page_size * page_size)

"""Prompts: lengths around page borders, shared streams, forks and continuations."""

from __future__ import annotations

from hypothesis import strategies as st

from tierfuzz.prompts import Piece

SHARED_STREAMS = 5


def lengths(page_size: int, most: int) -> st.SearchStrategy[int]:
    """Prompt lengths in tokens, 1..most: often whole pages, one less or one more."""
    pages = st.integers(1, max(1, most // page_size - 1))
    near = st.tuples(pages, st.sampled_from((0, 1, -1, 3))).map(lambda pair: pair[0] * page_size + pair[1])
    return (near | st.integers(1, most)).map(lambda length: max(1, min(length, most)))


def outputs(page_size: int) -> st.SearchStrategy[int]:
    """How many tokens to ask for: 0 and 1 take ways of their own, a page and more crosses a border."""
    return st.sampled_from((1, 2, 5, 0, 3, page_size, page_size + 3))


def fresh(stream: str, page_size: int, most: int) -> st.SearchStrategy[tuple[Piece, ...]]:
    """A prompt of a stream that nobody else uses."""
    return lengths(page_size, most).map(lambda length: (Piece(stream, 0, length),))


def shared(page_size: int, most: int) -> st.SearchStrategy[tuple[Piece, ...]]:
    """A prompt of one of a few streams, so that prompts share prefixes."""
    names = st.integers(0, SHARED_STREAMS - 1).map(lambda number: f"s{number}")
    return st.builds(lambda name, length: (Piece(name, 0, length),), names, lengths(page_size, most))


def cut(pieces: tuple[Piece, ...], length: int) -> tuple[Piece, ...]:
    """The first `length` tokens of a prompt."""
    kept: list[Piece] = []
    for piece in pieces:
        take = min(len(piece), length)
        if take:
            kept.append(Piece(piece.stream, piece.start, piece.start + take))
        length -= take
    return tuple(kept)


def length_of(pieces: tuple[Piece, ...]) -> int:
    """Tokens of a prompt, if its pieces of outputs are complete."""
    return sum(len(piece) for piece in pieces)


def forks(pieces: tuple[Piece, ...], stream: str, page_size: int) -> st.SearchStrategy[tuple[Piece, ...]]:
    """A prompt that shares a part of `pieces` and goes on with a stream of its own."""
    total = length_of(pieces)
    at = st.integers(1, max(1, total - 1))
    tail = st.integers(1, 2 * page_size)
    return st.builds(lambda a, t: (*cut(pieces, a), Piece(stream, 0, t)), at, tail)


def exact(pieces: tuple[Piece, ...], page_size: int) -> tuple[Piece, ...]:
    """The longest part of a prompt that is a whole number of pages; () when it has no whole page."""
    return cut(pieces, length_of(pieces) // page_size * page_size)

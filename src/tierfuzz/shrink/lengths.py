"""Shorter prompts: whole pages are taken out of streams, so that what was shared is shared still."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from tierfuzz.program import Generate, Program
from tierfuzz.prompts import Piece
from tierfuzz.shrink.places import all_requests, with_requests


class Gap(NamedTuple):
    """A part of a stream between two borders of pieces, in tokens; no piece begins or ends inside it."""

    stream: str
    start: int
    stop: int

    def pages(self, page_size: int) -> int:
        """Whole pages that fit into it."""
        return (self.stop - self.start) // page_size


def gaps_of(program: Program) -> list[Gap]:
    """Gaps of every stream of prompts, in order; not of outputs, whose length the request decides."""
    borders: dict[str, set[int]] = defaultdict(lambda: {0})
    for request in all_requests(program):
        for piece in request.prompt:
            if not piece.stream.startswith("@"):
                borders[piece.stream] |= {piece.start, piece.stop}
    return [
        Gap(stream, start, stop)
        for stream, found in borders.items()
        for start, stop in zip(sorted(found), sorted(found)[1:], strict=False)
    ]


def with_pages(program: Program, pages: Mapping[Gap, int]) -> Program:
    """The same prompts, these gaps cut to so many whole pages and the tokens over.

    Every border keeps its place within a page, and two pieces share what they shared before.
    """
    size = program.fleet.page_size
    moved: dict[tuple[str, int], int] = {}
    for gap in gaps_of(program):
        length = gap.stop - gap.start
        length -= (gap.pages(size) - pages.get(gap, gap.pages(size))) * size
        moved[gap.stream, gap.stop] = moved.get((gap.stream, gap.start), 0) + length

    def piece_of(piece: Piece) -> Piece:
        if piece.stream.startswith("@"):
            return piece
        start, stop = (moved.get((piece.stream, border), 0) for border in (piece.start, piece.stop))
        return Piece(piece.stream, start, stop)

    def changed(request: Generate) -> Generate:
        return msgspec.structs.replace(request, prompt=tuple(map(piece_of, request.prompt)))

    return with_requests(program, changed)

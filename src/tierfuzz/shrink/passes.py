"""Passes that make what the operations say simpler, the likely big wins first, fillers last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from tierfuzz.program import Burst, Fill, Program
from tierfuzz.shrink import fewer, plain
from tierfuzz.shrink.ddmin import ddmin, least, together
from tierfuzz.shrink.lengths import Gap, gaps_of, with_pages
from tierfuzz.shrink.plain import Edit


class Shrinking(Protocol):
    """What passes work on: the best program so far, and a way to try another."""

    @property
    def current(self) -> Program:
        """The best so far."""

    def attempt(self, candidate: Program) -> bool:
        """Whether it fails too; then it is the best."""

    def begin(self, name: str) -> None:
        """A pass begins."""


def simplify(search: Shrinking) -> None:
    """All passes, in order; each starts from what the ones before left."""
    for name, one in PASSES.items():
        search.begin(name)
        one(search)


def merge(search: Shrinking) -> None:
    """Two fillers to one, bursts to fewer requests."""
    while any(search.attempt(candidate) for candidate in fewer.merged_fills(search.current)):
        pass
    for burst in fewer.bursts_of(search.current):
        _fewer_members(search, burst)


def _fewer_members(search: Shrinking, burst: Burst) -> None:
    base = search.current
    ddmin(burst.requests, lambda kept: search.attempt(fewer.with_members(base, burst.id, kept)))


def shorten_prompts(search: Shrinking) -> None:
    """Every part of a stream to a page at once; where that does not fail, part by part by halving."""
    base = search.current
    size = base.fleet.page_size
    long = [gap for gap in gaps_of(base) if gap.pages(size) > 1]
    short = together(long, lambda gaps: search.attempt(with_pages(base, dict.fromkeys(gaps, 1))))
    pages = dict.fromkeys(short, 1)
    for gap in long:
        if gap not in short:
            pages[gap] = _shorter(search, base, pages, gap)


def _shorter(search: Shrinking, base: Program, pages: dict[Gap, int], gap: Gap) -> int:
    most = gap.pages(base.fleet.page_size)
    return least(2, most, lambda number: search.attempt(with_pages(base, {**pages, gap: number})))


def fewer_pieces(search: Shrinking) -> None:
    """Prompts of several pieces lose those that are not needed."""
    base = search.current
    together(fewer.spare_pieces(base), lambda gone: search.attempt(fewer.without_pieces(base, gone)))


def fewer_outputs(search: Shrinking) -> None:
    """One output; requests that need more keep theirs."""
    _all_edits(search, plain.fewer_outputs(search.current, 1))


def fewer_workers(search: Shrinking) -> None:
    """Workers that nothing is done to are gone, and copies and steps take no longer than they must."""
    edits: list[Edit] = []
    if fewer.fewer_workers(search.current) != search.current:
        edits.append(fewer.fewer_workers)
    _all_edits(search, edits + plain.plainer_fleet(search.current))


def no_overlap(search: Shrinking) -> None:
    """Requests of bursts one after another; no namespaces, aborts, logprobs."""
    bursts = [burst.id for burst in fewer.bursts_of(search.current)]
    _all_edits(search, [partial(fewer.in_turn, burst=burst) for burst in bursts])
    _all_edits(search, plain.plainer_requests(search.current))


def fewer_plants(search: Shrinking) -> None:
    """Faults that are not needed; the last one is what is looked for."""
    base = search.current
    if len(base.fleet.plants) > 1:
        ddmin(base.fleet.plants, lambda kept: bool(kept) and search.attempt(plain.with_plants(base, kept)))


def smaller_fillers(search: Shrinking) -> None:
    """Fillers of fewer requests, by halving."""
    for fill in [op for op in reversed(search.current.operations) if isinstance(op, Fill)]:
        _smaller(search, fill)


def _smaller(search: Shrinking, fill: Fill) -> None:
    """One with a target ends by itself, and says what it is for: left alone, unless one request is enough."""
    base = search.current
    most = plain.requests_of_fill(base.fleet, fill)
    if fill.target:
        search.attempt(plain.with_requests_of_fill(base, fill.id, 1))
        return
    least(1, most, lambda number: search.attempt(plain.with_requests_of_fill(base, fill.id, number)))


def _all_edits(search: Shrinking, edits: Sequence[Edit]) -> None:
    base = search.current
    together(edits, lambda chosen: search.attempt(plain.edited(base, chosen)))


PASSES: dict[str, Callable[[Shrinking], None]] = {
    "merge": merge,
    "prompts": shorten_prompts,
    "pieces": fewer_pieces,
    "outputs": fewer_outputs,
    "workers": fewer_workers,
    "overlap": no_overlap,
    "faults": fewer_plants,
    "fillers": smaller_fillers,
}

"""Prompts with outputs of earlier requests, and the size of fillers."""

from __future__ import annotations

import pytest

from tierfuzz.errors import UsageError
from tierfuzz.program import Fill, FleetConfig
from tierfuzz.prompts import Piece, tokens_of
from tierfuzz.resolve import filler_prompts, resolve


def test_outputs_are_cut_into_the_prompt() -> None:
    tokens = resolve((Piece("A", 0, 3), Piece("@x", 1, 3), Piece("B", 0, 1)), {"x": (7, 8, 9)})
    assert tokens == (*tokens_of((Piece("A", 0, 3),)), 8, 9, *tokens_of((Piece("B", 0, 1),)))


def test_fewer_outputs_than_asked_for_make_a_shorter_prompt() -> None:
    assert resolve((Piece("@x", 0, 9),), {"x": (7,)}) == (7,)


def test_outputs_of_a_request_that_never_ran_are_refused() -> None:
    with pytest.raises(UsageError, match="no request 'x'"):
        resolve((Piece("@x", 0, 1),), {})


@pytest.mark.parametrize("share", [0.6, 1.0, 1.2])
def test_the_due_part_of_a_filler_covers_its_share_of_the_pool(share: float) -> None:
    fleet = FleetConfig()
    prompts = [(request, due) for request, due in filler_prompts(Fill("f", 0, "F", share), fleet)]
    due = [request for request, is_due in prompts if is_due]
    pages = sum(len(tokens_of(request.prompt)) // fleet.page_size for request in due)
    assert pages * fleet.page_size >= share * fleet.device_tokens
    assert (pages - 8) * fleet.page_size < share * fleet.device_tokens
    assert len(prompts) > len(due), "the bound leaves room to go on for an effect"
    streams = {request.prompt[0].stream for request, _ in prompts}
    assert len(streams) == len(prompts)

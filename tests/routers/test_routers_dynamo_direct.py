"""Dynamo's direct path itself: quiet on plain orders, found out on those that it is known to get wrong."""

from __future__ import annotations

import pytest

pytest.importorskip("dynamo", reason="needs the extra dynamo: uv sync --extra dynamo")

from tierfuzz.consumers.base import Consumer
from tierfuzz.orders.causality import discipline_of
from tierfuzz.orders.check import check
from tierfuzz.orders.play import Draw, Setting, played
from tierfuzz.orders.stream import Stream
from tierfuzz.program import WRITE_POLICIES, WritePolicy
from tierfuzz.routers.registry import make_consumer

TWO = ((0, 0), (1, 0))
RANKS = ((0, 0), (0, 1))


def direct() -> Consumer:
    return make_consumer("dynamo-direct")


def history(policy: WritePolicy, *happens: str, sources: tuple[tuple[int, int], ...] = ((0, 0),)) -> Stream:
    draws = [Draw(name, at, 2, source=at) for at, name in enumerate(happens)]
    return played(discipline_of(policy), Setting(sources=sources), draws)


@pytest.mark.parametrize("policy", WRITE_POLICIES)
@pytest.mark.parametrize("sources", [((0, 0),), TWO, RANKS])
def test_plain_orders_are_answered_right(policy: WritePolicy, sources: tuple[tuple[int, int], ...]) -> None:
    once = ("insert", "back-up", "evict-device", "load-back", "insert", "evict-device", "evict-host")
    trial = check(history(policy, *once, *once, "clear", "insert", sources=sources), direct)
    assert trial.findings == []
    assert trial.comparisons > 20


def test_blocks_of_before_a_restart_are_kept() -> None:
    (finding,) = check(history("write_through", "insert", "restart"), direct).findings
    assert (finding.kind, finding.entry) == ("phantom", 1)


def test_prompts_are_routed_to_who_holds_them() -> None:
    consumer = direct()
    stream = history("write_through", "insert", "insert", sources=TWO)
    trial = check(stream, lambda: consumer)
    assert trial.findings == []

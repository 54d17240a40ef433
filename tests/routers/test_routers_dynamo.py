"""Dynamo itself, in all three ways: quiet on plain orders, and what it is known to get wrong is found."""

from __future__ import annotations

import pytest

pytest.importorskip("dynamo", reason="needs the extra dynamo: uv sync --extra dynamo")

from tierfuzz.codec import encode_batch
from tierfuzz.consumers.base import Consumer
from tierfuzz.errors import EnvironmentFailure
from tierfuzz.events import Batch, BlockStored, Tier
from tierfuzz.orders.causality import discipline_of
from tierfuzz.orders.check import check
from tierfuzz.orders.play import Draw, Setting, played
from tierfuzz.orders.stream import Sent, Stream
from tierfuzz.program import WRITE_POLICIES, WritePolicy
from tierfuzz.routers.private import check_private
from tierfuzz.routers.registry import make_consumer

Sources = tuple[tuple[int, int], ...]
NAMES = ("dynamo-direct", "dynamo-indexer", "dynamo-router")
ONE, TWO, RANKS = ((0, 0),), ((0, 0), (1, 0)), ((0, 0), (0, 1))
ONCE = ("insert", "back-up", "evict-device", "load-back", "insert", "evict-device", "evict-host")


def need(name: str) -> None:
    """Skip where the consumer cannot be started."""
    if name != "dynamo-direct":
        try:
            check_private(name)
        except EnvironmentFailure as error:
            pytest.skip(str(error))


def history(policy: WritePolicy, *happens: str, sources: Sources = ONE, strays: str = "") -> Stream:
    draws = [Draw(name, at, 2, source=at) for at, name in enumerate(happens)]
    setting = Setting(sources=sources, strays=frozenset({strays} - {""}))
    return played(discipline_of(policy), setting, draws)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("policy", WRITE_POLICIES)
@pytest.mark.parametrize("sources", [ONE, TWO, RANKS])
def test_plain_orders_are_answered_right(name: str, policy: WritePolicy, sources: Sources) -> None:
    need(name)
    stream = history(policy, *ONCE, *ONCE, "clear", "insert", sources=sources)
    trial = check(stream, lambda: make_consumer(name))
    assert trial.findings == []
    assert trial.comparisons > 20


@pytest.mark.parametrize(("name", "follows"), [("dynamo-direct", "sets"), ("dynamo-router", "counts")])
def test_a_second_copy_is_read_in_two_ways(name: str, follows: str) -> None:
    need(name)
    once = history("write_through", "insert").entries
    removed = history("write_through", "insert", "evict-device").entries[-1:]
    stream = Stream("write_through", (*once, *once, *removed))
    trial = check(stream, lambda: make_consumer(name))
    assert trial.findings == []
    assert trial.follows == {follows}


@pytest.mark.parametrize("name", NAMES)
def test_children_that_come_first_are_dropped(name: str) -> None:
    need(name)
    stored = history("write_through", "insert", "insert").entries
    first, child = (entry for entry in stored if isinstance(entry, Sent))
    stream = Stream("write_through", (child, first))
    (finding,) = check(stream, lambda: make_consumer(name)).findings
    assert (finding.kind, finding.entry) == ("forgets", 1)


@pytest.mark.parametrize("name", ["dynamo-direct", "dynamo-indexer"])
def test_blocks_of_before_a_restart_are_kept(name: str) -> None:
    need(name)
    (finding,) = check(history("write_through", "insert", "restart"), lambda: make_consumer(name)).findings
    assert (finding.kind, finding.entry) == ("phantom", 1)


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_goes_to_who_holds_it_until_all_is_forgotten(name: str) -> None:
    need(name)
    entry = history("write_through", "insert").entries[0]
    assert isinstance(entry, Sent)
    consumer: Consumer = make_consumer(name)
    (stored,) = entry.events
    assert isinstance(stored, BlockStored)
    tokens = stored.tokens
    for worker in (0, 1):
        consumer.register(worker, 4)
    consumer.deliver(1, 0, 0, encode_batch(Batch(0, 0.0, 0, entry.events)))
    assert consumer.overlap(tokens)[1, 0][Tier.DEVICE] == len(tokens) // 4
    assert consumer.route(tokens, {0: 0.0, 1: 0.0}) == 1
    consumer.deregister(1)
    assert (1, 0) not in consumer.overlap(tokens)
    consumer.reset()
    consumer.register(1, 4)
    assert consumer.overlap(tokens)[1, 0][Tier.DEVICE] == 0
    consumer.reset()

"""A host pool below the device: second copies give way to new ones, in an order that leaves no gap."""

from __future__ import annotations

import pytest

from tierfuzz.events import BlockRemoved, Tier
from tierfuzz.model.config import EngineConfig
from tierfuzz.model.engine import Engine
from tierfuzz.model.request import Request
from tierfuzz.model.rules import DEFAULT, Rules
from tierfuzz.prompts import Piece, tokens_of

DEVICE_PAGES, HOST_PAGES, PROMPT_PAGES = 32, 16, 4


def small_host(rules: Rules = DEFAULT) -> Engine:
    """Half as much host as device."""
    return Engine(EngineConfig(device_tokens=DEVICE_PAGES * 16, host_tokens=HOST_PAGES * 16), rules)


def ask(engine: Engine, stream: str, tokens: int = PROMPT_PAGES * 16 + 1) -> list[BlockRemoved]:
    """One request until the engine is idle; the removals that it caused."""
    engine.submit(Request(stream, tokens_of((Piece(stream, 0, tokens),)), 1))
    removals: list[BlockRemoved] = []
    while not engine.idle:
        for batch in engine.tick().batches:
            removals += [event for event in batch if isinstance(event, BlockRemoved)]
    return removals


def unbacked(engine: Engine) -> int:
    """Device pages without a host copy."""
    nodes = engine.cache.tree.nodes()
    return sum(len(node) for node in nodes if node.device is not None and not node.backed)


def test_the_oldest_second_copies_give_way() -> None:
    engine = small_host()
    for number in range(4):
        assert ask(engine, f"p{number}") == []
    assert engine.cache.host.free == 0
    (removal,) = ask(engine, "p4")
    assert removal.tier is Tier.HOST
    first = next(n for n in engine.cache.tree.nodes() if n.run.hashes == removal.hashes)
    assert first.device is not None, "its device copy stays"
    assert not first.backed
    assert unbacked(engine) == PROMPT_PAGES


def test_children_give_way_before_their_parents() -> None:
    engine = small_host()
    ask(engine, "p")
    ask(engine, "p", 2 * PROMPT_PAGES * 16 + 1)
    ask(engine, "q", 2 * PROMPT_PAGES * 16 + 1)
    removals = ask(engine, "r", 2 * PROMPT_PAGES * 16 + 1)
    assert [len(removal.hashes) for removal in removals] == [PROMPT_PAGES, PROMPT_PAGES]
    parent = next(n for n in engine.cache.tree.nodes() if n.run.hashes == removals[1].hashes)
    assert [child.run.hashes for child in parent.children.values()] == [removals[0].hashes]


def test_what_a_request_uses_keeps_its_copy() -> None:
    engine = small_host()
    ask(engine, "p")
    long = (DEVICE_PAGES - 4) * 16
    ask(engine, "p", long)
    head = next(n for n in engine.cache.tree.nodes() if n.parent is not None and n.parent.is_root)
    assert head.backed, "its child did not fit, and did not take the parent's room either"
    assert not any(child.backed for child in head.children.values())


@pytest.mark.parametrize("policy", ["write_back", "write_through_selective"])
def test_other_policies_lose_nothing_that_is_on_device(policy: str) -> None:
    config = EngineConfig(device_tokens=DEVICE_PAGES * 16, host_tokens=HOST_PAGES * 16, policy=policy)  # type: ignore[arg-type]
    engine = Engine(config, DEFAULT)
    for number in range(5):
        assert ask(engine, f"p{number}") == []


def test_without_the_rule_the_host_fills_up_for_good() -> None:
    engine = small_host(DEFAULT.but(mirrors_reclaimable=False))
    for number in range(7):
        assert ask(engine, f"p{number}") == []
    assert unbacked(engine) == 7 * PROMPT_PAGES - HOST_PAGES

"""Random overlapping work on the step model: nothing crashes, and at rest every page is accounted for."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tierfuzz.model.config import EngineConfig
from tierfuzz.model.copies import Copy
from tierfuzz.model.engine import Engine
from tierfuzz.model.request import Request
from tierfuzz.model.rules import PROFILES, rules_for
from tierfuzz.program import WRITE_POLICIES, WritePolicy
from tierfuzz.prompts import Piece, tokens_of

SHAPES = [
    EngineConfig(page_size=16, device_tokens=512, host_tokens=1040),
    EngineConfig(page_size=16, device_tokens=512, host_tokens=272, chunked_prefill=64),
    EngineConfig(page_size=4, device_tokens=256, host_tokens=516),
    EngineConfig(page_size=1, device_tokens=128, host_tokens=257, chunked_prefill=32),
    EngineConfig(page_size=10, device_tokens=120, host_tokens=490, chunked_prefill=0, output_reserve=0),
]


def random_request(rng: random.Random, number: int, config: EngineConfig) -> Request:
    """A request over few streams, so that prefixes are shared, forked and repeated."""
    longest = config.device_tokens // 2
    length = rng.choice(
        [rng.randint(1, longest), config.page_size * rng.randint(1, longest // config.page_size)]
    )
    cut = rng.randint(0, length)
    pieces = (Piece(f"s{rng.randint(0, 3)}", 0, cut), Piece(f"t{rng.randint(0, 3)}", cut, length))
    start = rng.choice([None, None, None, 0, length // 2])
    return Request(
        str(number), tokens_of(pieces), rng.choice([0, 1, 2, 5, 20]), rng.choice(["", "", "a"]), start
    )


class RandomGate:
    """Copies land at random polls; `hold` keeps all of them back."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.hold = False

    def __call__(self, _: Copy) -> bool:
        """Whether this copy may land now."""
        return not self.hold and self.rng.random() < 0.4


def assert_accounted(engine: Engine) -> None:
    """At rest the pools hold exactly what the tree says, and nothing is pinned."""
    nodes = list(engine.cache.tree.nodes())
    assert engine.cache.device.used == sum(len(n) for n in nodes if n.device is not None)
    assert engine.cache.host.used == sum(len(n) for n in nodes if n.host is not None)
    assert all(n.lock == 0 and n.pins == 0 and not n.staged for n in nodes)
    assert all(n.device is not None or n.host is not None for n in nodes)


def drain(engine: Engine, wanted: set[str]) -> None:
    """Tick until idle; a bound of ticks stands for a hang."""
    for _ in range(20_000):
        if engine.idle:
            break
        wanted -= {reply.rid for reply in engine.tick().replies}
    assert engine.idle
    assert not wanted


@pytest.mark.parametrize("profile", sorted(PROFILES))
@pytest.mark.parametrize("policy", WRITE_POLICIES)
@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_random_overlap_ends_at_rest_with_every_page_accounted_for(
    profile: str, policy: WritePolicy, shape: int
) -> None:
    base = SHAPES[shape]
    config = replace(base, policy=policy)
    for seed in range(4):
        rng = random.Random(seed)
        engine = Engine(config, rules_for(profile))
        gate = RandomGate(rng)
        engine.copies.gate = gate
        wanted: set[str] = set()
        for number in range(150):
            engine.submit(random_request(rng, number, config))
            wanted.add(str(number))
            if rng.random() < 0.1:
                engine.abort(str(rng.randint(max(0, number - 3), number)))
            gate.hold = rng.random() < 0.1
            for _ in range(rng.choice([0, 1, 2, 5, 30])):
                wanted -= {reply.rid for reply in engine.tick().replies}
        gate.hold = False
        drain(engine, wanted)
        assert_accounted(engine)
        assert engine.flush()
        assert engine.cache.device.used == engine.cache.host.used == 0

"""Overlapping requests, aborts and late copies: at rest events, metrics and accounting tell one story."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import httpx
import pytest
from sim_process import BOUND_S, DEVICE, PAGE, Sim, body, running, tokens

from tierfuzz.program import WRITE_POLICIES

REQUESTS = 120


def random_body(rng: random.Random, number: int) -> dict[str, Any]:
    """A request over few streams, so that prefixes are shared, forked and repeated."""
    cut, rest = rng.randint(1, 20 * PAGE), rng.randint(0, 10 * PAGE)
    ids = tokens(f"s{rng.randint(0, 3)}", cut) + tokens(f"t{rng.randint(0, 2)}", rest)
    space = rng.choice([{}, {}, {"extra_key": "tenant"}])
    return body(ids, rng.choice([0, 1, 2, 17]), rid=str(number), **space)


async def send_all(sim: Sim, rng: random.Random) -> list[dict[str, Any]]:
    """Every request, up to eight at once, some aborted."""
    room = asyncio.Semaphore(8)
    async with httpx.AsyncClient(base_url=sim.http.base_url, timeout=BOUND_S) as client:

        async def send(request: dict[str, Any], abort: bool) -> dict[str, Any]:
            async with room:
                asked = asyncio.ensure_future(client.post("/generate", json=request))
                if abort:
                    await client.post("/abort_request", json={"rid": request["rid"]})
                reply = await asked
            assert reply.status_code == 200, reply.text
            return dict(reply.json()["meta_info"])

        wishes = [(random_body(rng, n), rng.random() < 0.15) for n in range(REQUESTS)]
        return await asyncio.gather(*(send(*wish) for wish in wishes))


def resident(events: list[list[Any]]) -> Counter[str]:
    """Tokens in each tier, by the events alone."""
    counts: Counter[str] = Counter()
    for event in events:
        if event[0] != "AllBlocksCleared":
            counts[event[-1]] += PAGE * len(event[1]) * (1 if event[0] == "BlockStored" else -1)
    return counts


@pytest.mark.parametrize("policy", WRITE_POLICIES)
def test_random_overlap_ends_at_rest_with_every_page_accounted_for(policy: str) -> None:
    delays = ("--sim-ack-delay-ms=8", "--sim-step-delay-ms=0.5", "--sim-seed=11")
    with running(f"--hicache-write-policy={policy}", *delays) as sim:
        replies = asyncio.run(send_all(sim, random.Random(7)))
        sim.rest()
        assert len(replies) == REQUESTS
        for meta in replies:
            split = meta.get("cached_tokens_details") or {"device": 0, "host": 0}
            assert split["device"] + split["host"] == meta.get("cached_tokens", 0)
        counts = resident(sim.happened())
        assert sim.metric("kv_used_tokens") == 0
        assert (
            counts["GPU"] == sim.metric("kv_evictable_tokens") == DEVICE - sim.metric("kv_available_tokens")
        )
        assert counts["CPU_PINNED"] == sim.metric("hicache_host_used_tokens")
        assert sim.flush() == 200
        assert sim.metric("kv_available_tokens") == DEVICE

"""Dumps of Dynamo, in shapes as ai-dynamo-runtime 1.6.1 gave them, read into pages by source and tier."""

from __future__ import annotations

from typing import Any

import pytest

from tierfuzz.events import Tier
from tierfuzz.routers.dynamo_dump import Residency

KEYS = [8906183847324352865, 13603407971999731239, 14110926993704080949, 13533274874015438926]


def event(tier: str, parent: int | None, *blocks: int, worker: int = 1, rank: int = 0) -> dict[str, Any]:
    """One event of a dump: blocks 1001 to 1004 with the hashes of their tokens."""
    stored = [{"block_hash": b, "tokens_hash": KEYS[b - 1001], "mm_extra_info": None} for b in blocks]
    data = {"stored": {"parent_hash": parent, "start_position": None, "blocks": stored}}
    inner = {"event_id": 0, "data": data, "dp_rank": rank}
    return {"worker_id": worker, "storage_tier": tier, "residency_domain": "worker", "event": inner}


HELD = [
    event("device", None, 1001, 1002),
    event("host_pinned", 1003, 1004),
    event("host_pinned", 1001, 1002),
    event("host_pinned", 1002, 1003),
    event("host_pinned", None, 1001),
]


def test_each_tier_is_read_for_itself() -> None:
    assert Residency(HELD).leading(KEYS) == {(1, 0): {Tier.DEVICE: 2, Tier.HOST: 4}}


@pytest.mark.parametrize(("left_out", "host"), [(1, 3), (2, 1), (3, 2), (4, 0)])
def test_pages_behind_a_hole_do_not_lead(left_out: int, host: int) -> None:
    events = [one for at, one in enumerate(HELD) if at != left_out]
    assert Residency(events).leading(KEYS)[1, 0][Tier.HOST] == host


def test_a_page_of_the_middle_does_not_stand_at_the_root() -> None:
    assert Residency(HELD).leading(KEYS[1:]) == {(1, 0): {Tier.DEVICE: 0, Tier.HOST: 0}}


def test_sources_are_kept_apart() -> None:
    found = Residency([*HELD, event("device", None, 1001, worker=2, rank=1)])
    assert found.leading(KEYS)[2, 1] == {Tier.DEVICE: 1}
    assert found.size((1, 0), Tier.HOST) == 4
    assert found.size((2, 1), Tier.HOST) == 0


def test_a_clear_in_a_dump_says_nothing_of_pages() -> None:
    cleared = {
        "worker_id": 1,
        "storage_tier": "device",
        "event": {"event_id": 0, "data": "cleared", "dp_rank": 0},
    }
    assert Residency([cleared]).leading(KEYS) == {(1, 0): {Tier.DEVICE: 0}}

"""Data-parallel ranks of a worker, as a client sees them (reference 3.1)."""

from __future__ import annotations

import pytest
from sim_process import running, tokens

from tierfuzz.errors import UsageError
from tierfuzz.sim.options import command
from tierfuzz.sim.publisher import _of_rank

RANKED = ("--dp-size=2",)


def test_each_rank_has_a_cache_of_its_own() -> None:
    with running(*RANKED) as sim:
        prompt = tokens("A", 64)
        for rank, key in ((0, "routed_dp_rank"), (1, "data_parallel_rank")):
            assert sim.cached(prompt, 1, **{key: rank})[0] == 0
            assert sim.cached(prompt, 1, **{key: rank})[0] == 48
        assert sim.http.post("/generate", json={"input_ids": prompt, "routed_dp_rank": 2}).status_code == 400


def test_without_a_rank_requests_go_round() -> None:
    with running(*RANKED) as sim:
        prompt = tokens("A", 64)
        assert [sim.cached(prompt, 1)[0] for _ in range(4)] == [0, 0, 48, 48]


def test_what_a_worker_says_of_its_ranks() -> None:
    with running(*RANKED) as sim:
        info = sim.http.get("/server_info").json()
        loads = sim.http.get("/v1/loads").json()
        text = sim.http.get("/metrics").text
    assert info["kv_events"]["dp_size"] == 2
    assert [load["dp_rank"] for load in loads["loads"]] == [0, 1]
    assert loads["dp_rank_count"] == 2
    assert 'sglang:kv_available_tokens{dp_rank="1"' in text


def test_a_flush_empties_every_rank() -> None:
    with running(*RANKED) as sim:
        prompt = tokens("A", 64)
        for rank in (0, 1):
            sim.generate(prompt, 1, routed_dp_rank=rank)
        assert sim.flush() == 200
        assert [sim.cached(prompt, 1, routed_dp_rank=rank)[0] for rank in (0, 1)] == [0, 0]


@pytest.mark.parametrize(
    ("endpoint", "rank", "expected"),
    [
        ("tcp://*:5557", 0, "tcp://*:5557"),
        ("tcp://*:5557", 2, "tcp://*:5559"),
        ("tcp://*:0", 1, "tcp://*:0"),
        ("inproc://events", 1, "inproc://events_dp1"),
        ("ipc:///tmp/events", 0, "ipc:///tmp/events"),
    ],
)
def test_a_rank_publishes_at_the_base_port_and_its_number(endpoint: str, rank: int, expected: str) -> None:
    assert _of_rank(endpoint, rank) == expected


def test_a_rank_cannot_have_a_file_of_its_own() -> None:
    with pytest.raises(UsageError, match="expected tcp://HOST:PORT where there are several ranks"):
        _of_rank("ipc:///tmp/events", 1)


def test_ranks_and_storage_exclude_each_other() -> None:
    flags = ["--enable-hierarchical-cache", *RANKED, "--hicache-storage-backend", "file"]
    with pytest.raises(UsageError, match="--dp-size 2 with storage: expected one rank"):
        command.main(flags, standalone_mode=False)

"""Where a worker's events are, from what it says of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tierfuzz.engines.discovery import Endpoints, endpoints_of

URL = "http://10.0.0.7:30000"


def info_with(endpoint: str, replay: str | None = None, **more: Any) -> dict[str, Any]:
    """/server_info of a worker with these endpoints on its command line."""
    config = {"publisher": "zmq", "endpoint": endpoint, "topic": "kv"}
    return {
        "kv_events_config": json.dumps({**config, "replay_endpoint": replay} if replay else config),
        **more,
    }


def test_a_recorded_worker_tells_both_endpoints(recordings: Path) -> None:
    info = json.loads((recordings / "server-info-0.5.17.json").read_text())
    found = endpoints_of(info, "http://127.0.0.1:30000")
    assert found == Endpoints("tcp://127.0.0.1:5630", "tcp://127.0.0.1:5631", "kv-events")


@pytest.mark.parametrize("wildcard", ["*", "0.0.0.0", "[::]"])
def test_a_wildcard_is_the_host_of_the_url(wildcard: str) -> None:
    info = info_with(f"tcp://{wildcard}:5557", f"tcp://{wildcard}:5558")
    assert endpoints_of(info, URL) == Endpoints("tcp://10.0.0.7:5557", "tcp://10.0.0.7:5558", "kv")


def test_a_worker_that_connects_has_to_be_bound_for() -> None:
    found = endpoints_of(info_with("tcp://127.0.0.1:5557", "tcp://127.0.0.1:5558"), "http://127.0.0.1:30000")
    assert found == Endpoints("tcp://127.0.0.1:5557", "tcp://127.0.0.1:5558", "kv", bind=True)


def test_given_endpoints_win() -> None:
    found = endpoints_of(info_with("tcp://10.1.1.1:1"), URL, "tcp://h:2", "tcp://h:3")
    assert found == Endpoints("tcp://h:2", "tcp://h:3", "kv")


def test_the_descriptor_wins_over_a_port_that_was_left_open() -> None:
    descriptor = {
        "endpoint_host": "*",
        "endpoint_port_base": 7001,
        "topic": "t",
        "replay_endpoint_port_base": 7002,
    }
    info = info_with("tcp://*:0", "tcp://*:0", kv_events=descriptor)
    assert endpoints_of(info, URL) == Endpoints("tcp://10.0.0.7:7001", "tcp://10.0.0.7:7002", "t")


def test_a_simulated_worker_says_its_replay_endpoint() -> None:
    info = info_with("tcp://*:1", sim={"replay_endpoint": "tcp://127.0.0.1:9"})
    assert endpoints_of(info, URL).replay == "tcp://127.0.0.1:9"


@pytest.mark.parametrize("told", [{}, {"kv_events_config": None}, {"kv_events_config": "not json"}])
def test_a_worker_without_events_has_no_endpoints(told: dict[str, Any]) -> None:
    assert endpoints_of(told, URL) == Endpoints()

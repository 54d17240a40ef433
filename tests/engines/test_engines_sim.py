"""The simulated worker's driver: command lines, capacities, what it may be asked."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tierfuzz.engines.base import Capacities, Control
from tierfuzz.engines.registry import driver_for, engine_names
from tierfuzz.engines.sim import ADMIN_KEY, SimDriver
from tierfuzz.errors import EnvironmentFailure, UsageError
from tierfuzz.program import FleetConfig

PORTS = [4001, 4002, 4003]


def recorded_info(recordings: Path) -> dict[str, Any]:
    """/server_info of a real 0.5.17: page 16, D 1024, ratio 2."""
    return dict(json.loads((recordings / "server-info-0.5.17.json").read_text()))


def flags(config: FleetConfig, worker: int = 0) -> dict[str, str | list[str]]:
    """The command line as flag: value; a repeated flag has a list, a switch has ""."""
    command = SimDriver().launch(config, worker, PORTS).command
    assert command[:3] == [sys.executable, "-m", "tierfuzz.sim"]
    found: dict[str, Any] = {}
    for at, word in enumerate(command):
        if word.startswith("--"):
            value = command[at + 1] if at + 1 < len(command) and not command[at + 1].startswith("--") else ""
            found[word] = value if word not in found else [*([found[word]]), value]
    return found


def test_the_command_line_has_every_part_of_the_configuration() -> None:
    config = FleetConfig(
        policy="write_back",
        page_size=4,
        device_tokens=512,
        host_ratio=0.5,
        chunked_prefill=128,
        profile="sglang-0.5.17",
        plants=("lost-backup", "my.py:Fault"),
        ack_delay_ms=1.5,
        step_delay_ms=0.25,
        seed=7,
    )
    expected = {
        "--host": "127.0.0.1",
        "--port": "4001",
        "--enable-hierarchical-cache": "",
        "--enable-metrics": "",
        "--hicache-ratio": "0.5",
        "--hicache-write-policy": "write_back",
        "--max-total-tokens": "512",
        "--page-size": "4",
        "--chunked-prefill-size": "128",
        "--admin-api-key": ADMIN_KEY,
        "--sim-profile": "sglang-0.5.17",
        "--sim-plant": ["lost-backup", "my.py:Fault"],
        "--sim-ack-delay-ms": "1.5",
        "--sim-step-delay-ms": "0.25",
        "--sim-seed": "7",
    }
    found = flags(config)
    events = json.loads(str(found.pop("--kv-events-config")))
    assert found == expected
    assert events == {
        "publisher": "zmq",
        "topic": "kv-events",
        "endpoint": "tcp://*:4002",
        "replay_endpoint": "tcp://*:4003",
    }


def test_addresses_are_on_loopback_and_match_the_ports() -> None:
    launch = SimDriver().launch(FleetConfig(), 0, PORTS)
    assert launch.base_url == "http://127.0.0.1:4001"
    assert launch.events_endpoint == "tcp://127.0.0.1:4002"
    assert launch.replay_endpoint == "tcp://127.0.0.1:4003"
    assert (launch.topic, launch.api_key) == ("kv-events", ADMIN_KEY)


def test_workers_of_a_fleet_have_seeds_of_their_own() -> None:
    assert [flags(FleetConfig(seed=7), worker)["--sim-seed"] for worker in (0, 1)] == ["7", "8"]


def test_extra_arguments_come_last_so_that_they_win() -> None:
    command = SimDriver().launch(FleetConfig(extra_args=("--page-size", "1")), 0, PORTS).command
    assert command[-2:] == ["--page-size", "1"]


@pytest.mark.parametrize(
    ("profile", "wire"), [("default", "array"), ("sglang-0.5.17", "array"), ("sglang-0.5.23", "map")]
)
def test_the_event_wire_follows_the_profile(profile: str, wire: str) -> None:
    assert SimDriver().event_wire(FleetConfig(profile=profile)) == wire


def test_capacities_of_a_recorded_server(recordings: Path) -> None:
    capacities = SimDriver().capacities(recorded_info(recordings))
    assert capacities == Capacities(16, 1024, 2064, "write_through", 16)


@pytest.mark.parametrize(
    ("page", "device", "ratio", "host"), [(1, 512, 2.0, 1025), (4, 512, 2.0, 1028), (16, 1024, 0.5, 528)]
)
def test_the_host_pool_has_the_sizes_of_the_recordings(
    page: int, device: int, ratio: float, host: int
) -> None:
    info = {"page_size": page, "max_total_num_tokens": device, "hicache_ratio": ratio}
    assert SimDriver().capacities(info | {"hicache_write_policy": "write_back"}).host_tokens == host


def test_a_host_pool_sized_in_bytes_is_not_guessed(recordings: Path) -> None:
    assert SimDriver().capacities(recorded_info(recordings) | {"hicache_size": 4}).host_tokens is None


@pytest.mark.parametrize(
    "key", ["page_size", "max_total_num_tokens", "hicache_ratio", "hicache_write_policy"]
)
@pytest.mark.parametrize("how", ["missing", "null"])
def test_what_the_server_does_not_say_is_named(recordings: Path, key: str, how: str) -> None:
    info = recorded_info(recordings)
    info[key] = None
    if how == "missing":
        del info[key]
    with pytest.raises(EnvironmentFailure, match=f"/server_info has no '{key}'"):
        SimDriver().capacities(info)


def test_it_can_be_asked_for_everything() -> None:
    driver = driver_for("sim")
    assert driver.controls == set(Control)
    assert driver.holds_copies


def test_an_unknown_engine_is_refused_with_the_known_ones() -> None:
    assert "sim" in engine_names()
    with pytest.raises(UsageError, match=r"unknown engine 'simm'; expected one of: .*sim") as told:
        driver_for("simm")
    assert all(name in str(told.value) for name in engine_names())


def test_ranks_have_event_sockets_at_the_next_ports() -> None:
    launch = SimDriver().launch(FleetConfig(ranks=2), 0, [1000, 2000, 3000])
    assert launch.command[launch.command.index("--dp-size") + 1] == "2"
    assert launch.of_rank(0) == launch
    second = launch.of_rank(1)
    assert (second.events_endpoint, second.replay_endpoint) == (
        "tcp://127.0.0.1:2001",
        "tcp://127.0.0.1:3001",
    )
    assert second.base_url == launch.base_url

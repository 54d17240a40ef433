"""The command line of a real SGLang, and what is compared with what the worker took."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tierfuzz.engines.registry import driver_for
from tierfuzz.engines.sglang.checks import differences
from tierfuzz.engines.sglang.driver import SglangDriver
from tierfuzz.engines.sglang.gpus import gpu_of
from tierfuzz.engines.sglang.options import Ports, SglangOptions, options_for
from tierfuzz.engines.sglang.versions import traits_of, wire_of
from tierfuzz.errors import UsageError
from tierfuzz.model.rules import SGLANG_0_5_17, SGLANG_0_5_23
from tierfuzz.model.versions import rules_of_version
from tierfuzz.program import FleetConfig

PORTS = Ports(4001, 4002, 4003, 4004)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIERFUZZ_CACHE", str(tmp_path))


def asked(**changes: Any) -> SglangOptions:
    """Options as the recorded worker was started with, but for `changes`."""
    return replace(SglangOptions(Path("model"), PORTS, 16, 1024, "write_through"), **changes)


def value_of(flag: str, words: list[str]) -> str:
    """The word after the last such flag."""
    return words[len(words) - words[::-1].index(flag)]


def recorded_info(recordings: Path, **changes: Any) -> dict[str, Any]:
    """/server_info of a real 0.5.17: page 16, D 1024, ratio 2."""
    return {**json.loads((recordings / "server-info-0.5.17.json").read_text()), **changes}


# the command line ----------------------------------------------------------------------------------
def test_every_part_of_the_configuration_is_on_the_command_line() -> None:
    config = FleetConfig(
        policy="write_back", page_size=4, device_tokens=512, host_ratio=0.5, chunked_prefill=128, seed=7
    )
    words = options_for(config, 1, PORTS, Path("model")).flags()
    expected = {
        "--model-path": "model",
        "--port": "4001",
        "--nccl-port": "4004",
        "--page-size": "4",
        "--max-total-tokens": "512",
        "--hicache-ratio": "0.5",
        "--hicache-write-policy": "write_back",
        "--chunked-prefill-size": "128",
        "--random-seed": "8",
    }
    assert {flag: value_of(flag, words) for flag in expected} == expected
    assert "--enable-hierarchical-cache" in words
    assert "--hicache-storage-backend" not in words


def test_nothing_listens_beyond_loopback() -> None:
    words = asked().flags()
    events = json.loads(value_of("--kv-events-config", words))
    assert value_of("--host", words) == "127.0.0.1"
    assert (events["publisher"], events["endpoint"]) == ("zmq", "tcp://127.0.0.1:4002")
    assert events["replay_endpoint"] == "tcp://127.0.0.1:4003"


@pytest.mark.parametrize(
    ("changes", "switch", "there"),
    [
        ({}, "--disable-cuda-graph", True),
        ({"cuda_graphs": True}, "--disable-cuda-graph", False),
        ({}, "--disable-overlap-schedule", False),
        ({"overlap": False}, "--disable-overlap-schedule", True),
        ({"host_gb": 3}, "--hicache-ratio", False),
        ({"host_gb": 3}, "--hicache-size", True),
        ({"storage_threshold": 32}, "--hicache-storage-backend", True),
    ],
)
def test_switches(changes: dict[str, Any], switch: str, there: bool) -> None:
    assert (switch in asked(**changes).flags()) == there


def test_no_limit_for_chunks_is_minus_one() -> None:
    assert value_of("--chunked-prefill-size", asked(chunked_prefill=0).flags()) == "-1"


def test_extra_arguments_come_last_and_so_win() -> None:
    words = asked(extra=("--page-size", "32")).flags()
    assert value_of("--page-size", words) == "32"


# the driver ----------------------------------------------------------------------------------------
def test_the_worker_connects_to_the_subscriber() -> None:
    launch = SglangDriver().launch(FleetConfig(engine="sglang"), 0, [1, 2, 3, 4])
    assert launch.events_bind
    assert (launch.base_url, launch.events_endpoint) == ("http://127.0.0.1:1", "tcp://127.0.0.1:2")
    assert launch.command[1:3] == ["-m", "sglang.launch_server"]


def test_another_python_can_have_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIERFUZZ_SGLANG_PYTHON", "/opt/engine/python")
    assert SglangDriver().launch(FleetConfig(), 0, [1, 2, 3, 4]).command[0] == "/opt/engine/python"


@pytest.mark.parametrize("engine", ["sglang", "sglang-cpu"])
def test_no_fault_can_be_planted_in_a_real_engine(engine: str) -> None:
    with pytest.raises(UsageError, match="simulated worker only"):
        driver_for(engine).launch(FleetConfig(plants=("lost-backup",)), 0, [1, 2, 3, 4])


def test_there_are_no_graphs_on_a_cpu() -> None:
    with pytest.raises(UsageError, match="--cuda-graphs"):
        driver_for("sglang-cpu").launch(FleetConfig(cuda_graphs=True), 0, [1, 2, 3, 4])


@pytest.mark.parametrize(
    ("worker", "visible", "gpu"), [(0, "3,5", "3"), (1, "3, 5", "5"), (2, "3,5", "3"), (4, "2", "2")]
)
def test_workers_share_the_gpus_out(worker: int, visible: str, gpu: str) -> None:
    assert gpu_of(worker, visible) == gpu


def test_without_a_gpu_none_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_of(0, None) == ""


# versions ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("version", "rules"),
    [
        ("0.5.17", SGLANG_0_5_17),
        ("0.5.17.post1", SGLANG_0_5_17),
        ("0.5.9", SGLANG_0_5_17),
        ("0.5.23", SGLANG_0_5_23),
        ("0.6", SGLANG_0_5_23),
    ],
)
def test_a_version_has_the_rules_of_the_nearest_known_one(version: str, rules: object) -> None:
    assert rules_of_version(version) is rules


def test_traits_and_wire_follow_the_version() -> None:
    assert traits_of("0.5.17").silent_revival
    assert not traits_of("0.5.23").silent_revival
    assert (wire_of("0.5.17"), wire_of("0.5.23")) == ("array", "map")


# checks --------------------------------------------------------------------------------------------
def test_the_recorded_worker_is_what_it_was_asked_to_be(recordings: Path) -> None:
    assert differences(asked(), recorded_info(recordings), "0.5.17") == []


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"enable_hierarchical_cache": False}, "enable_hierarchical_cache is False, asked was True"),
        ({"radix_eviction_policy": "lfu"}, "radix_eviction_policy is 'lfu'"),
        ({"disable_overlap_schedule": True}, "disable_overlap_schedule"),
        ({"chunked_prefill_size": 2048}, "chunked_prefill_size is 2048, asked was 8192"),
        ({"hicache_storage_backend": "file"}, "hicache_storage_backend"),
        ({"version": "0.5.16"}, "version is '0.5.16', asked was '0.5.17'"),
        ({"kv_events": None}, "kv_events is missing"),
        ({"kv_events": {"block_size": 64}}, "blocks of 64 tokens, pages have 16"),
    ],
)
def test_what_the_worker_took_otherwise_is_named(
    changes: dict[str, Any], named: str, recordings: Path
) -> None:
    (text,) = differences(asked(), recorded_info(recordings, **changes), "0.5.17")
    assert named in text


def test_an_extra_argument_is_not_held_against_the_worker(recordings: Path) -> None:
    info = recorded_info(recordings, chunked_prefill_size=2048)
    assert differences(asked(extra=("--chunked-prefill-size=2048",)), info) == []

"""What a live worker says about itself, held against excerpts of a real one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sim_process import DEVICE, PAGE, Sim, running, tokens

RECORDINGS = Path(__file__).parents[1] / "recordings"
# Of pools that only other model families have.
NOT_MODELLED = {
    "sglang:swa_token_usage",
    "sglang:swa_evictable_tokens",
    "sglang:mamba_evictable_tokens",
    "sglang:pending_prealloc_token_usage",
}


@pytest.fixture(scope="module")
def sim() -> Iterator[Sim]:
    """One worker for the module, with a device hit, a host hit and two outputs behind it."""
    with running() as worker:
        prefix = tokens("a", 4 * PAGE + 1)
        worker.generate(prefix)
        worker.generate(prefix, 2)
        for stream in "fgh":
            worker.generate(tokens(stream, DEVICE // 2))
        worker.generate(prefix)
        worker.rest()
        yield worker


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample by name and labels, parsed by Prometheus' own parser."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_have_the_recorded_names_and_labels(sim: Sim) -> None:
    reply = sim.http.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    recorded = samples((RECORDINGS / "metrics-0.5.17.txt").read_text())
    missing = {name for name, labels in recorded if (name, labels) not in samples(reply.text)}
    assert missing == NOT_MODELLED


def test_metrics_count_what_happened(sim: Sim) -> None:
    found = {name: sim.metric(name) for name in ("load_back_tokens_total", "hicache_host_total_tokens")}
    assert found == {"load_back_tokens_total": 64, "hicache_host_total_tokens": 2064}
    text = sim.http.get("/metrics").text
    by_source = {
        dict(labels).get("cache_source"): v for (name, labels), v in samples(text).items() if "cached" in name
    }
    assert by_source == {"device": 64.0, "host": 64.0}
    modes = {dict(labels)["mode"]: v for (name, labels), v in samples(text).items() if "realtime" in name}
    assert modes == {"prefill_compute": 65 + 1 + 3 * 512 + 1, "prefill_cache": 128, "decode": 2}
    pool = (
        sim.metric("kv_available_tokens") + sim.metric("kv_evictable_tokens") + sim.metric("kv_used_tokens")
    )
    assert pool == DEVICE


def test_server_info_has_the_recorded_keys_and_values(sim: Sim) -> None:
    recorded = json.loads((RECORDINGS / "server-info-0.5.17.json").read_text())
    found = sim.http.get("/server_info").json()
    assert found == sim.http.get("/get_server_info").json()
    differing = {key for key, value in recorded.items() if found.get(key) != value}
    assert differing == {"kv_events_config", "kv_events", "internal_states"}
    port = int(sim.events.rpartition(":")[2])
    assert found["kv_events"] == {**recorded["kv_events"], "endpoint_port_base": port}
    assert found["internal_states"][0]["memory_usage"]["token_capacity"] == DEVICE
    assert found["port"] == sim.http.base_url.port
    assert found["sim"]["profile"] == "default"


def test_events_are_cut_at_the_advertised_size_unless_a_fault_says_otherwise(sim: Sim) -> None:
    assert sim.http.get("/server_info").json()["kv_events"]["block_size"] == PAGE
    with running("--sim-plant=half-size-advertised") as ill:
        found = ill.http.get("/server_info").json()
        assert (found["page_size"], found["kv_events"]["block_size"]) == (PAGE, PAGE // 2)


def test_the_newer_profile_shows_its_version_and_replay_port() -> None:
    with running("--sim-profile=sglang-0.5.23") as newer:
        found = newer.http.get("/server_info").json()
        assert found["version"] == "0.5.23"
        assert found["kv_events"]["replay_endpoint_port_base"] == int(newer.replay.rpartition(":")[2])
        labels = {dict(pairs).get("cache_type") for _, pairs in samples(newer.http.get("/metrics").text)}
        assert labels == {None, "UnifiedRadixCache"}


def test_health_touches_nothing_and_health_generate_runs_one_token() -> None:
    with running("--page-size=1") as small:
        assert small.http.get("/health").status_code == 200
        assert len(small.replayed()) == 1
        assert small.http.get("/health_generate").status_code == 200
        small.rest()
        stores = [event for event in small.happened() if event[0] == "BlockStored" and event[-1] == "GPU"]
        assert stores[0][3] == [0]  # with pages of one token a probe is cached, as in the engine


def test_models_and_loads_name_the_worker(sim: Sim) -> None:
    assert [card["id"] for card in sim.http.get("/v1/models").json()["data"]] == ["tiny"]
    assert sim.http.get("/get_model_info").json()["is_generation"] is True
    load = sim.http.get("/v1/loads").json()["loads"][0]
    assert (load["num_running_reqs"], load["num_waiting_reqs"], load["max_total_num_tokens"]) == (
        0,
        0,
        DEVICE,
    )

"""What a worker says about itself: server info, loads, models, health, metrics (reference 2, 6.5)."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tierfuzz.sim.asgi import json_response
from tierfuzz.sim.metrics import CONTENT_TYPE, metrics_text
from tierfuzz.sim.rank import Rank
from tierfuzz.sim.state import SimWorker


def event_descriptor(worker: SimWorker) -> dict[str, Any] | None:
    """`kv_events` of /server_info: None without a publisher or with an endpoint that is not TCP."""
    config = worker.options.events
    if config is None or worker.publisher is None or not config.endpoint.startswith("tcp://"):
        return None
    host = config.endpoint.removeprefix("tcp://").rpartition(":")[0]
    found = {
        "publisher": config.publisher,
        "endpoint_host": host,
        "endpoint_port_base": int(worker.publisher.endpoint.rpartition(":")[2]),
        "topic": config.topic,
        "block_size": worker.publisher.advertise(worker.options.page_size),
        "dp_size": worker.options.ranks,
    }
    if worker.engine.rules.unified and worker.publisher.replay_endpoint is not None:
        found["replay_endpoint_port_base"] = int(worker.publisher.replay_endpoint.rpartition(":")[2])
    return found


def server_info(worker: SimWorker) -> dict[str, Any]:
    """The engine's keys, and under `sim` what only a simulated worker has."""
    options = worker.options
    return {
        **dict(options.ignored),
        "host": options.host,
        "port": worker.port,
        "chunked_prefill_size": options.chunked_prefill,
        "page_size": options.page_size,
        "radix_eviction_policy": "lru",
        "schedule_policy": "fcfs",
        "decode_log_interval": options.decode_log_interval,
        "disable_overlap_schedule": not options.overlap,
        "enable_cache_report": options.cache_report,
        "enable_metrics": options.metrics,
        "served_model_name": options.served_model_name,
        "kv_events_config": options.events_text,
        "enable_hierarchical_cache": True,
        "hicache_ratio": options.hicache_ratio,
        "hicache_size": options.hicache_size_gb,
        "hicache_write_policy": worker.policy,
        "hicache_storage_backend": worker.storage_backend,
        "hicache_storage_prefetch_policy": worker.storage_policy,
        "hicache_storage_backend_extra_config": worker.storage_extra,
        "max_total_num_tokens": options.device_tokens,
        "max_req_input_len": options.max_input_tokens,
        "version": options.version,
        "kv_events": event_descriptor(worker),
        "internal_states": [_internal_state(worker)],
        "sim": _own(worker),
    }


def _internal_state(worker: SimWorker) -> dict[str, Any]:
    return {
        "last_gen_throughput": 0.0,
        "memory_usage": {"token_capacity": worker.options.device_tokens, "token_capacity_swa": None},
        "effective_max_running_requests_per_dp": worker.options.max_running,
    }


def _own(worker: SimWorker) -> dict[str, Any]:
    options = worker.options
    return {
        "profile": options.profile,
        "changed_rules": dict(options.changed_rules),
        "plants": options.plants,
        "seed": options.seed,
        "ack_delay_ms": options.ack_delay_ms,
        "step_delay_ms": options.step_delay_ms,
        "publish_delay_ms": options.publish_delay_ms,
        "host_tokens": options.host_tokens,
        "replay_endpoint": worker.publisher.replay_endpoint if worker.publisher is not None else None,
        "copies": "held" if worker.scheduler.gate.held else "free",
    }


def _load(rank: Rank) -> dict[str, Any]:
    levels = rank.engine.gauges()
    used = levels.device_total - levels.device_free - levels.device_evictable
    return {
        "dp_rank": rank.number,
        "num_running_reqs": levels.running,
        "num_waiting_reqs": levels.waiting,
        "num_total_reqs": levels.running + levels.waiting,
        "num_used_tokens": used,
        "max_total_num_tokens": levels.device_total,
        "token_usage": used / levels.device_total,
    }


class InfoEndpoints:
    """GET endpoints that change nothing."""

    def __init__(self, worker: SimWorker) -> None:
        self._worker = worker

    async def server_info(self, _: Request) -> Response:
        """/server_info, /get_server_info."""
        return json_response(server_info(self._worker))

    async def health(self, _: Request) -> Response:
        """/health: alive. Runs no request, so it never touches the cache (unlike the engine's default)."""
        return Response(status_code=200)

    async def model_info(self, _: Request) -> Response:
        """/get_model_info, /model_info."""
        name = self._worker.options.served_model_name
        return json_response({"model_path": name, "is_generation": True, "weight_version": "default"})

    async def models(self, _: Request) -> Response:
        """/v1/models."""
        options = self._worker.options
        card = {
            "id": options.served_model_name,
            "object": "model",
            "created": int(self._worker.started),
            "owned_by": "tierfuzz",
            "max_model_len": options.device_tokens,
        }
        return json_response({"object": "list", "data": [card]})

    async def loads(self, _: Request) -> Response:
        """/v1/loads: nothing about the host tier, as in the engine."""
        loads = [_load(rank) for rank in self._worker.ranks]
        counts = ("num_running_reqs", "num_waiting_reqs", "num_total_reqs")
        total = {key: sum(load[key] for load in loads) for key in counts}
        stamp = self._worker.clock.wall()
        found = {"timestamp": stamp, "dp_rank_count": len(loads), "loads": loads, "aggregate": total}
        return json_response(found)

    async def metrics(self, _: Request) -> Response:
        """/metrics."""
        return Response(metrics_text(self._worker), media_type=CONTENT_TYPE)

"""The simulated worker as an engine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from tierfuzz.codec import Wire
from tierfuzz.engines.base import Capacities, Control, Launch, event_block, host_pool_tokens, require
from tierfuzz.model.rules import rules_for
from tierfuzz.program import FleetConfig
from tierfuzz.traits import Traits
from tierfuzz.worker.http import WorkerClient

ADMIN_KEY = "tierfuzz-sim"
TOPIC = "kv-events"


class SimDriver:
    """Starts `python -m tierfuzz.sim` with the engine's own flags.

    It publishes in the step that makes it idle, so one idle answer and one replay prove rest.
    """

    name = "sim"
    ports_needed = 3
    confirmations = 1
    ready_bound_s = 30.0
    request_bound_s = 5.0
    rest_bound_s = 5.0
    stop_grace_s = 5.0
    dear_restarts = False
    holds_copies = True
    fresh_gauges = True
    controls = frozenset(Control)
    storage_variable = "SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR"

    def launch(self, config: FleetConfig, worker: int, ports: list[int]) -> Launch:
        """Ports: HTTP, events, replay. `*` in an endpoint makes the worker bind, on loopback."""
        http, events, replay = ports
        publisher = {
            "publisher": "zmq",
            "topic": TOPIC,
            "endpoint": f"tcp://*:{events}",
            "replay_endpoint": f"tcp://*:{replay}",
        }
        return Launch(
            command=[sys.executable, "-m", "tierfuzz.sim", *_flags(config, worker, http, publisher)],
            env={},
            base_url=f"http://127.0.0.1:{http}",
            events_endpoint=f"tcp://127.0.0.1:{events}",
            replay_endpoint=f"tcp://127.0.0.1:{replay}",
            topic=TOPIC,
            api_key=ADMIN_KEY,
        )

    def unavailable(self, config: FleetConfig) -> str:
        """It needs nothing."""
        del config
        return ""

    def traits(self, config: FleetConfig) -> Traits:
        """From the rules of the profile."""
        rules = rules_for(config.profile)
        return Traits(not rules.namespace_aliasing, rules.removal_first, rules.silent_revival)

    def event_wire(self, config: FleetConfig) -> Wire:
        """That of the engine version whose profile it has."""
        return "map" if rules_for(config.profile).wire == "map" else "array"

    def capacities(self, info: dict[str, Any]) -> Capacities:
        """The simulated worker says everything."""
        page, device = int(require(info, "page_size")), int(require(info, "max_total_num_tokens"))
        host = host_pool_tokens(info, device, page)
        return Capacities(page, device, host, str(require(info, "hicache_write_policy")), event_block(info))

    def differences(self, config: FleetConfig, info: dict[str, Any]) -> list[str]:
        """It takes everything, or refuses to start."""
        del config, info
        return []

    def litter(self, pid: int) -> list[Path]:
        """It leaves nothing."""
        del pid
        return []

    def hold(self, client: WorkerClient) -> None:
        """Copies between tiers stop completing."""
        client.control(copies="hold")

    def release(self, client: WorkerClient) -> None:
        """Held copies complete."""
        client.control(copies="release")


def _flags(config: FleetConfig, worker: int, port: int, publisher: dict[str, str]) -> list[str]:
    flags = {
        "--host": "127.0.0.1",
        "--port": port,
        "--hicache-ratio": config.host_ratio,
        "--hicache-write-policy": config.policy,
        "--max-total-tokens": config.device_tokens,
        "--page-size": config.page_size,
        "--chunked-prefill-size": config.chunked_prefill,
        "--kv-events-config": msgspec.json.encode(publisher).decode(),
        "--admin-api-key": ADMIN_KEY,
        "--sim-profile": config.profile,
        "--sim-ack-delay-ms": config.ack_delay_ms,
        "--sim-step-delay-ms": config.step_delay_ms,
        "--sim-seed": config.seed + worker,
    }
    line = ["--enable-hierarchical-cache", "--enable-metrics"]
    line += [str(part) for pair in flags.items() for part in pair]
    if config.ranks > 1:
        line += ["--dp-size", str(config.ranks)]
    line += [part for plant in config.plants for part in ("--sim-plant", plant)]
    if config.storage_threshold:
        extra = msgspec.json.encode({"prefetch_threshold": config.storage_threshold}).decode()
        line += ["--hicache-storage-backend", "file", "--hicache-storage-prefetch-policy", "wait_complete"]
        line += ["--hicache-storage-backend-extra-config", extra]
    return line + list(config.extra_args)

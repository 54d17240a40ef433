"""An engine whose workers run already: everything as its driver says, but nothing is launched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tierfuzz.codec import Wire
from tierfuzz.engines.base import Capacities, EngineDriver, Launch
from tierfuzz.engines.discovery import endpoints_of
from tierfuzz.errors import UsageError
from tierfuzz.model.versions import DEFAULT_VERSION
from tierfuzz.program import Attached, FleetConfig
from tierfuzz.traits import Traits
from tierfuzz.worker.http import WorkerClient

KEY_VARIABLE = "TIERFUZZ_API_KEY"
DEFAULT_THRESHOLD = 256  # tokens worth a prefetch, where the worker does not say (reference 1)


def api_key() -> str | None:
    """The key that the environment gives; it is never shown or written down."""
    return os.environ.get(KEY_VARIABLE) or None


class AttachedDriver:
    """Wraps the driver of the engine; `api_key` goes with every request and is written down nowhere."""

    ports_needed = 0
    stop_grace_s = 0.0
    dear_restarts = True

    def __init__(self, driver: EngineDriver, config: FleetConfig, api_key: str | None = None) -> None:
        self._driver = driver
        self._api_key = api_key
        self.name = driver.name
        self.confirmations = driver.confirmations
        self.ready_bound_s = driver.request_bound_s
        self.request_bound_s = driver.request_bound_s
        self.rest_bound_s = driver.rest_bound_s
        self.fresh_gauges = driver.fresh_gauges and config.starts_empty
        self.holds_copies = driver.holds_copies and config.starts_empty
        self.controls = driver.controls
        self.storage_variable = driver.storage_variable

    def launch(self, config: FleetConfig, worker: int, ports: list[int]) -> Launch:
        """Addresses only; the empty command starts nothing."""
        del ports
        at = config.attached[worker]
        return Launch([], {}, at.url, at.events, at.replay or None, at.topic, self._api_key, at.bind)

    def unavailable(self, config: FleetConfig) -> str:
        """Nothing is started."""
        del config
        return ""

    def traits(self, config: FleetConfig) -> Traits:
        """Of the engine's version."""
        return self._driver.traits(config)

    def event_wire(self, config: FleetConfig) -> Wire:
        """Of the engine's version."""
        return self._driver.event_wire(config)

    def capacities(self, info: dict[str, Any]) -> Capacities:
        """As the worker says."""
        return self._driver.capacities(info)

    def differences(self, config: FleetConfig, info: dict[str, Any]) -> list[str]:
        """Nothing was asked of it."""
        del config, info
        return []

    def litter(self, pid: int) -> list[Path]:
        """What it leaves is its owner's."""
        del pid
        return []

    def hold(self, client: WorkerClient) -> None:
        """As the engine."""
        self._driver.hold(client)

    def release(self, client: WorkerClient) -> None:
        """As the engine."""
        self._driver.release(client)


def attached_to(info: dict[str, Any], url: str, events: str = "", replay: str = "") -> Attached:
    """The addresses of a running worker; endpoints as given, or as it says."""
    where = endpoints_of(info, url, events, replay)
    return Attached(url, where.events, where.replay, where.topic, where.bind)


def attached_config(
    infos: list[dict[str, Any]], attached: list[Attached], driver: EngineDriver, destructive: bool
) -> FleetConfig:
    """The configuration that the running workers have; UsageError where they differ."""
    configs = [_config_of(info, driver) for info in infos]
    if any(config != configs[0] for config in configs):
        raise UsageError(
            "the attached workers have different sizes, policies or versions; test one kind at a time"
        )
    return FleetConfig(
        **{name: getattr(configs[0], name) for name in configs[0].__struct_fields__}
        | {"attached": tuple(attached), "workers": len(attached), "destructive": destructive}
    )


def _config_of(info: dict[str, Any], driver: EngineDriver) -> FleetConfig:
    has, sim = driver.capacities(info), info.get("sim") or {}
    if has.host_tokens is None:
        raise UsageError(
            "the host pool of an attached worker was sized in bytes: how many tokens it holds is not known; "
            "start it with --hicache-ratio"
        )
    chunk = info.get("chunked_prefill_size")
    return FleetConfig(
        engine=driver.name,
        policy=has.policy,  # type: ignore[arg-type]
        page_size=has.page_size,
        device_tokens=has.device_tokens,
        host_ratio=float(info["hicache_ratio"]),
        chunked_prefill=chunk if isinstance(chunk, int) and chunk > 0 else 0,
        profile=sim.get("profile", "default"),
        engine_version="" if sim else str(info.get("version") or DEFAULT_VERSION),
        overlap=not info.get("disable_overlap_schedule"),
        storage_threshold=_threshold(info),
    )


def _threshold(info: dict[str, Any]) -> int:
    if not info.get("hicache_storage_backend"):
        return 0
    extra = info.get("hicache_storage_backend_extra_config")
    found = extra.get("prefetch_threshold") if isinstance(extra, dict) else None
    return found if isinstance(found, int) and found > 0 else DEFAULT_THRESHOLD

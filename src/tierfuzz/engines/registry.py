"""Engines by name."""

from __future__ import annotations

from collections.abc import Callable

from tierfuzz.engines.attached import AttachedDriver, api_key
from tierfuzz.engines.base import EngineDriver
from tierfuzz.engines.sglang.driver import SglangDriver
from tierfuzz.engines.sglang_cpu.driver import SglangCpuDriver
from tierfuzz.engines.sim import SimDriver
from tierfuzz.errors import UsageError
from tierfuzz.program import FleetConfig

_DRIVERS: dict[str, Callable[[], EngineDriver]] = {
    "sim": SimDriver,
    "sglang": SglangDriver,
    "sglang-cpu": SglangCpuDriver,
}


def engine_names() -> tuple[str, ...]:
    """Names that driver_for() knows."""
    return tuple(sorted(_DRIVERS))


def driver_for(name: str) -> EngineDriver:
    """The driver of an engine; UsageError lists the names for an unknown one."""
    if name not in _DRIVERS:
        raise UsageError(f"unknown engine {name!r}; expected one of: {', '.join(engine_names())}")
    return _DRIVERS[name]()


def driver_of(config: FleetConfig) -> EngineDriver:
    """The driver of a fleet: of its engine, or for workers of it that run already."""
    driver = driver_for(config.engine)
    return AttachedDriver(driver, config, api_key()) if config.attached else driver

"""Engines by name."""

from __future__ import annotations

from tierfuzz.engines.base import EngineDriver
from tierfuzz.engines.sim import SimDriver
from tierfuzz.errors import UsageError

_DRIVERS: dict[str, type[EngineDriver]] = {"sim": SimDriver}


def driver_for(name: str) -> EngineDriver:
    """The driver of an engine; UsageError lists the names for an unknown one."""
    if name not in _DRIVERS:
        raise UsageError(f"unknown engine {name!r}; expected one of: {', '.join(sorted(_DRIVERS))}")
    return _DRIVERS[name]()

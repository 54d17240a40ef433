"""Options of `tierfuzz run` for workers that run already: look at them first, then take them as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tierfuzz.clock import SYSTEM_CLOCK
from tierfuzz.engines.attached import api_key, attached_config, attached_to
from tierfuzz.engines.registry import driver_for
from tierfuzz.preflight.checks import refuse_vacuous
from tierfuzz.preflight.probe import examine
from tierfuzz.preflight.seen import Seen
from tierfuzz.program import FleetConfig


def attached_fleet(
    urls: Sequence[str], events: Sequence[str], replay: Sequence[str], engine: str, destructive: bool
) -> FleetConfig:
    """The fleet of these workers; Vacuous where a run on one of them would prove nothing."""
    seen = [look(url, nth(events, number), nth(replay, number)) for number, url in enumerate(urls)]
    for one in seen:
        refuse_vacuous(one)
    infos = [one.info for one in seen]
    attached = [
        attached_to(one.info, one.url, nth(events, number), nth(replay, number))
        for number, one in enumerate(seen)
    ]
    return attached_config(infos, attached, driver_for(_engine_of(infos, engine)), destructive)


def look(url: str, events: str, replay: str) -> Seen:
    """A preflight with the key of the environment."""
    return examine(url, events, replay, SYSTEM_CLOCK, api_key())


def nth(values: Sequence[str], number: int) -> str:
    """The value for a worker, or \"\" where it was not given."""
    return values[number] if number < len(values) else ""


def _engine_of(infos: Sequence[dict[str, Any]], engine: str) -> str:
    """A simulated worker says that it is one; any other is SGLang unless told otherwise."""
    if any("sim" in info for info in infos):
        return "sim"
    return "sglang" if engine == "sim" else engine

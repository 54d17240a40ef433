"""The seam between tierfuzz and an engine: launch, capacities, sockets, what may be asked of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from tierfuzz.errors import EnvironmentFailure
from tierfuzz.program import FleetConfig
from tierfuzz.traits import Traits


@dataclass(frozen=True)
class Launch:
    """How to start one worker and where it will be."""

    command: list[str]
    env: dict[str, str]
    base_url: str
    events_endpoint: str
    replay_endpoint: str
    topic: str
    api_key: str | None


@dataclass(frozen=True)
class Capacities:
    """What a running worker says it has, in tokens; `host_tokens` is None where it does not say."""

    page_size: int
    device_tokens: int
    host_tokens: int | None
    policy: str


class EngineDriver(Protocol):
    """One engine. `ports_needed` loopback ports a worker; `confirmations`: see worker.rest.settle.

    `*_bound_s`: seconds until a start, a reply or rest counts as not coming; `fresh_gauges`: metrics are
    levels of now, not of the last report.
    """

    name: str
    ports_needed: int
    confirmations: int
    ready_bound_s: float
    request_bound_s: float
    rest_bound_s: float
    holds_copies: bool
    fresh_gauges: bool

    def launch(self, config: FleetConfig, worker: int, ports: list[int]) -> Launch:
        """The command line and addresses of one worker."""

    def traits(self, config: FleetConfig) -> Traits:
        """What the judgement has to know of this version."""

    def capacities(self, info: dict[str, Any]) -> Capacities:
        """Read /server_info."""


def require(info: dict[str, Any], key: str) -> Any:
    """A field of /server_info; EnvironmentFailure names what is missing."""
    if key not in info:
        raise EnvironmentFailure(f"/server_info has no {key!r}; expected an SGLang-like worker")
    return info[key]

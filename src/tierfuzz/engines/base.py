"""The seam between tierfuzz and an engine: launch, capacities, sockets, what may be asked of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from tierfuzz.codec import Wire
from tierfuzz.errors import EnvironmentFailure
from tierfuzz.program import FleetConfig
from tierfuzz.traits import Traits
from tierfuzz.worker.http import WorkerClient


class Control(StrEnum):
    """What a worker of an engine can be asked to do, beyond answering requests."""

    FLUSH = "flush"
    ABORT = "abort"
    IDLE_PROBE = "idle-probe"
    HOLD_COPIES = "hold-copies"
    FORCE_OUTPUTS = "force-outputs"
    RANKS = "ranks"  # several data-parallel ranks, and requests for one of them
    STORAGE = "storage"  # attach, detach and clear at run time


@dataclass(frozen=True)
class Launch:
    """How to start one worker and where it will be. `events_bind`: the worker connects to the events
    endpoint, so that the subscriber has to bind it (reference 3.1)."""

    command: list[str]
    env: dict[str, str]
    base_url: str
    events_endpoint: str
    replay_endpoint: str | None
    topic: str
    api_key: str | None
    events_bind: bool = False

    def of_rank(self, rank: int) -> Launch:
        """The same worker with the event endpoints of one of its ranks: base port + rank (reference 3.1)."""
        replay = self.replay_endpoint
        return replace(
            self,
            events_endpoint=_shifted(self.events_endpoint, rank),
            replay_endpoint=None if replay is None else _shifted(replay, rank),
        )


@dataclass(frozen=True)
class Capacities:
    """What a running worker says it has, in tokens; `host_tokens` is None where it does not say, and so is
    `event_block`, the block size that routers are told to look up."""

    page_size: int
    device_tokens: int
    host_tokens: int | None
    policy: str
    event_block: int | None = None


class EngineDriver(Protocol):
    """One engine. `ports_needed` loopback ports a worker; `confirmations`: see worker.rest.settle.

    `*_bound_s`: seconds until a start, a reply or rest counts as not coming; `fresh_gauges`: metrics are
    levels of now, not of the last report; `holds_copies` is short for Control.HOLD_COPIES in `controls`;
    `storage_variable`: environment variable that names the folder of file storage; `stop_grace_s`: seconds
    from SIGTERM to SIGKILL; `dear_restarts`: a start takes as long as many cases.
    """

    name: str
    ports_needed: int
    confirmations: int
    ready_bound_s: float
    request_bound_s: float
    rest_bound_s: float
    stop_grace_s: float
    dear_restarts: bool
    holds_copies: bool
    fresh_gauges: bool
    controls: frozenset[Control]
    storage_variable: str

    def launch(self, config: FleetConfig, worker: int, ports: list[int]) -> Launch:
        """The command line and addresses of one worker."""

    def unavailable(self, config: FleetConfig) -> str:
        """Why no worker can be started on this machine; "" where one can."""

    def traits(self, config: FleetConfig) -> Traits:
        """What the judgement has to know of this version."""

    def event_wire(self, config: FleetConfig) -> Wire:
        """The form of its event payloads."""

    def capacities(self, info: dict[str, Any]) -> Capacities:
        """Read /server_info; EnvironmentFailure names what is missing."""

    def differences(self, config: FleetConfig, info: dict[str, Any]) -> list[str]:
        """What a running worker took differently from what was asked, beyond its capacities."""

    def litter(self, pid: int) -> list[Path]:
        """Files that this running worker will leave outside the folders it was given."""

    def hold(self, client: WorkerClient) -> None:
        """Copies between tiers stop completing; UsageError where it cannot."""

    def release(self, client: WorkerClient) -> None:
        """Held copies complete; UsageError where it cannot."""


def _shifted(endpoint: str, by: int) -> str:
    base, _, port = endpoint.rpartition(":")
    return f"{base}:{int(port) + by}" if by else endpoint


def require(info: dict[str, Any], key: str) -> Any:
    """A field of /server_info; EnvironmentFailure names what is missing."""
    if info.get(key) is None:
        raise EnvironmentFailure(f"/server_info has no {key!r}; expected an SGLang-like worker")
    return info[key]


def event_block(info: dict[str, Any]) -> int | None:
    """The block size under `kv_events` of an SGLang-like worker; None where it is not a number."""
    described = info.get("kv_events")
    size = described.get("block_size") if isinstance(described, dict) else None
    return size if isinstance(size, int) else None


def host_pool_tokens(info: dict[str, Any], device_tokens: int, page_size: int) -> int | None:
    """Host pool of an SGLang-like worker: whole pages of the ratio, and one more (reference 1).

    None when the pool was sized in bytes: it then depends on the model.
    """
    if info.get("hicache_size"):
        return None
    return (int(device_tokens * float(require(info, "hicache_ratio"))) // page_size + 1) * page_size

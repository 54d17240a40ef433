"""Where the events of a running worker are, from what it says of itself (reference 2, 3.1, 6.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import msgspec

WILDCARDS = ("*", "0.0.0.0", "::", "[::]")


@dataclass(frozen=True)
class Endpoints:
    """`bind`: the worker connects to the events endpoint, so whoever listens has to bind it. Empty texts:
    not known."""

    events: str = ""
    replay: str = ""
    topic: str = ""
    bind: bool = False


def endpoints_of(info: dict[str, Any], base_url: str, events: str = "", replay: str = "") -> Endpoints:
    """What is given, or else what the descriptor and the configuration of the worker's events name."""
    config, descriptor = _config(info), info.get("kv_events") or {}
    host = urlsplit(base_url).hostname or "127.0.0.1"
    told = _described(descriptor) or str(config.get("endpoint") or "")
    replay_told = _described(descriptor, "replay_endpoint_port_base") or str(
        config.get("replay_endpoint") or ""
    )
    return Endpoints(
        events=events or _reachable(told, host),
        replay=replay or _own(info) or _reachable(replay_told, host),
        topic=str(descriptor.get("topic") or config.get("topic") or ""),
        bind=not events and told.startswith("tcp://") and not _wild(told),
    )


def _config(info: dict[str, Any]) -> dict[str, Any]:
    """`kv_events_config`, the JSON of the command line."""
    try:
        return msgspec.json.decode(info.get("kv_events_config") or "{}", type=dict[str, Any])
    except (msgspec.DecodeError, TypeError):
        return {}


def _described(descriptor: dict[str, Any], port: str = "endpoint_port_base") -> str:
    number = descriptor.get(port)
    return f"tcp://{descriptor.get('endpoint_host') or '*'}:{number}" if number else ""


def _own(info: dict[str, Any]) -> str:
    """A simulated worker says its replay endpoint itself (its port may have been 0)."""
    return str((info.get("sim") or {}).get("replay_endpoint") or "")


def _split(endpoint: str) -> tuple[str, str]:
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    return host, port


def _wild(endpoint: str) -> bool:
    return _split(endpoint)[0] in WILDCARDS


def _reachable(endpoint: str, host: str) -> str:
    """The endpoint as seen from here: a wildcard stands for the host that serves HTTP."""
    if not endpoint.startswith("tcp://"):
        return ""
    return f"tcp://{host}:{_split(endpoint)[1]}" if _wild(endpoint) else endpoint

"""Consumers by name, those of others among them; what needs an extra is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple, cast

from tierfuzz.consumers.base import Consumer
from tierfuzz.consumers.registry import CONSUMERS
from tierfuzz.consumers.registry import make_consumer as make_own
from tierfuzz.errors import EnvironmentFailure, UsageError
from tierfuzz.model.faults import Fault, owners


class Live(NamedTuple):
    """Where the class of a live consumer stands, which extra it needs, and by which modules that shows."""

    module: str
    name: str
    extra: str
    needs: tuple[str, ...]


LIVE: dict[str, Live] = {
    "dynamo-direct": Live("tierfuzz.routers.dynamo_direct", "DynamoDirect", "dynamo", ("dynamo",)),
    "dynamo-indexer": Live("tierfuzz.routers.dynamo_housed", "DynamoIndexer", "dynamo", ("dynamo",)),
    "dynamo-router": Live("tierfuzz.routers.dynamo_housed", "DynamoRouter", "dynamo", ("dynamo",)),
}


def consumer_names() -> list[str]:
    """Every name that --consumer takes."""
    return sorted({*CONSUMERS, *LIVE})


def make_consumer(name: str, faults: Sequence[Fault] = ()) -> Consumer:
    """A fresh consumer; UsageError for an unknown name, EnvironmentFailure where its extra is missing.

    To make one is cheap: processes and sockets come when a worker is registered.
    """
    if name in CONSUMERS:
        return make_own(name, faults)
    if name not in LIVE:
        raise UsageError(f"unknown consumer {name!r}; expected one of: {', '.join(consumer_names())}")
    if any("consumer" in owners(fault) for fault in faults):
        raise UsageError(f"--plant with consumer {name}: faults can be planted in our own consumers only")
    live = LIVE[name]
    if missing := [module for module in live.needs if find_spec(module) is None]:
        raise EnvironmentFailure(
            f"consumer {name} needs {', '.join(missing)}; install the extra {live.extra}: "
            f"uv sync --extra {live.extra}, or pip install 'tierfuzz[{live.extra}]'"
        )
    return cast(Consumer, getattr(import_module(live.module), live.name)())

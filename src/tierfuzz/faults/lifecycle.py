"""Faults of flush, abort and release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tierfuzz.events import AllBlocksCleared
from tierfuzz.model.engine import Engine
from tierfuzz.model.faults import Fault
from tierfuzz.model.node import Node
from tierfuzz.model.request import Active
from tierfuzz.observation import TierSplit

Account = tuple[int, TierSplit | None]


class FlushKeepsHost(Fault):
    """A flush clears the device, announces that everything is gone, and goes on serving from host."""

    oracle = "clear-scope"
    source = "T46, vllm-project/vllm#57727"

    def clear(self, engine: Engine, inner: Callable[[], None]) -> None:
        """Empty the device only."""
        del inner
        cache = engine.cache
        for node in list(cache.tree.nodes()):
            _leave_device(engine, node)
        cache.emit(AllBlocksCleared(), "")


class FlushLeaksHost(Fault):
    """A flush forgets the tree but not the host slots that it held."""

    oracle = "leak-at-rest"
    source = "T51, sgl-project/sglang#23216"

    def clear(self, engine: Engine, inner: Callable[[], None]) -> None:
        """Clear with the host allocator untouched."""
        leaked = engine.cache.host.used
        inner()
        engine.cache.host.take(leaked)


class AbortKeepsLock(Fault):
    """An aborted request never unlocks its prefix."""

    oracle = "leak-at-rest"
    source = "T49, sgl-project/sglang#20049"

    def release(self, engine: Engine, inner: Callable[..., None], active: Active, **how: Any) -> None:
        """Lock once more than the release unlocks."""
        if active.aborted:
            engine.cache.lock(active.node)
        inner(active, **how)


def _leave_device(engine: Engine, node: Node) -> None:
    if node.device is not None:
        engine.cache.device.give(node.device)
        node.device = None

"""Faults of flush, abort and release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tierfuzz.events import AllBlocksCleared
from tierfuzz.model.engine import Engine
from tierfuzz.model.eviction import Staged
from tierfuzz.model.faults import Fault
from tierfuzz.model.node import Node
from tierfuzz.model.request import Active, TickResult


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


class IdleEngineSleeps(Fault):
    """With nothing to run the scheduler handles no acks and publishes nothing until the next request."""

    oracle = "hang"
    source = "T48, sgl-project/sglang#20560"

    def tick(self, engine: Engine, inner: Callable[[], TickResult]) -> TickResult:
        """Return early when no request is there."""
        return inner() if engine.waiting or engine.live() else TickResult()


class AcksWaitForPrefill(Fault):
    """While requests only decode no acks are handled, so that pages whose copies are done stay locked."""

    oracle = "hang"
    source = "T49, sgl-project/sglang#20049"

    def poll_copies(self, engine: Engine, inner: Callable[[], None]) -> None:
        """Handle acks when a prefill may follow, or nothing runs."""
        if engine.waiting or not engine.live():
            inner()


class FlushRefusedForEver(Fault):
    """A load-back counts as in flight for ever, so that every later flush is refused."""

    oracle = "hang"
    source = "T52, sgl-project/sglang#21413"

    def __init__(self) -> None:
        self.loads = 0

    def load_back(
        self, engine: Engine, inner: Callable[..., bool], anchor: Node | None, nodes: list[Node]
    ) -> bool:
        """Load, and never forget it."""
        del engine
        done = inner(anchor, nodes)
        self.loads += done
        return done

    def flush(self, engine: Engine, inner: Callable[[], bool]) -> bool:
        """Refuse while something seems to be under way."""
        del engine
        return not self.loads and inner()


class UnlockWithoutLock(Fault):
    """Under write_back the ack of a copy unlocks a node that nobody has locked for it, and its ancestors."""

    oracle = "leak-at-rest"
    source = "T55, bytedance-iaas/sglang#748"

    def commit(self, engine: Engine, inner: Callable[[Staged], None], staged: Staged) -> None:
        """Handle the copies as those of the other policies."""
        nodes = [node for node, _ in staged]
        inner(staged)
        for node in nodes:
            engine.cache.unlock(node)


class LoadsHoldBlocks(Fault):
    """A waiting request has its host part loaded and held, with no room kept for the rest of it."""

    oracle = "hang"
    source = "T57, vllm-project/vllm#45388"

    def __init__(self) -> None:
        self.held: dict[Active, Node] = {}

    def tick(self, engine: Engine, inner: Callable[[], TickResult]) -> TickResult:
        """Load for all that were not admitted; give up what the admitted ones held."""
        result = inner()
        for active in engine.waiting:
            device, host = engine.match_prompt(active)
            if host and engine.cache.load_back(device[-1] if device else None, host):
                engine.cache.lock(host[-1])
                self.held[active] = host[-1]
        for active in [active for active in self.held if active not in engine.waiting]:
            engine.cache.unlock(self.held.pop(active))
        return result


def _leave_device(engine: Engine, node: Node) -> None:
    if node.device is not None:
        engine.cache.device.give(node.device)
        node.device = None

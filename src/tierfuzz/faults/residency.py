"""Faults of the event publisher: pages that come or go while nobody, or the wrong thing, is told."""

from __future__ import annotations

from collections.abc import Callable

from tierfuzz.events import AllBlocksCleared, BlockRemoved, Tier
from tierfuzz.model.engine import Engine
from tierfuzz.model.faults import Fault
from tierfuzz.model.node import Node
from tierfuzz.model.request import Active
from tierfuzz.model.sequence import PageRun

REQUESTS_A_SESSION = 3
REQUESTS_A_RESET = 8


class RefillUnannounced(Fault):
    """Pages that come back from storage enter the host without a store event."""

    oracle = "leak-at-rest"
    source = "T18, sgl-project/sglang#38486"

    def __init__(self) -> None:
        self._refilling = False

    def refill(
        self, engine: Engine, inner: Callable[..., int], anchor: Node, run: PageRun, slots: list[int]
    ) -> int:
        """Note that what is stored now comes from storage."""
        del engine
        self._refilling = True
        found = inner(anchor, run, slots)
        self._refilling = False
        return found

    def emit_store(self, engine: Engine, inner: Callable[[Node, Tier], None], node: Node, tier: Tier) -> None:
        """Announce everything else."""
        del engine
        if not self._refilling:
            inner(node, tier)


class AckKeepsSuffix(Fault):
    """A node that is split before its host copy is acknowledged: only its rest is announced."""

    oracle = "no-backup"
    source = "T19, sgl-project/sglang#27072"

    def split(self, engine: Engine, inner: Callable[[Node, int], Node], node: Node, pages: int) -> Node:
        """The upper half is in no pending backup."""
        upper = inner(node, pages)
        for copy in engine.cache.copies.pending:
            if copy.kind == "backup" and upper in copy.nodes:
                copy.nodes.remove(upper)
        return upper


class SessionFreedSilently(Fault):
    """Every third request ends a session: the leaf of its prefix leaves the device without a removal."""

    oracle = "ledger-accounting"
    source = "T20, sgl-project/sglang#29750"

    def __init__(self) -> None:
        self._finished = 0
        self._ended: list[tuple[str, PageRun]] = []

    def insert_finished(self, engine: Engine, inner: Callable[[Active], None], active: Active) -> None:
        """Finish, and note the session."""
        inner(active)
        self._finished += 1
        if self._finished % REQUESTS_A_SESSION == 0:
            pages = active.committed // engine.config.page_size
            self._ended.append((active.request.namespace, active.sequence.run(pages)))

    def poll_copies(self, engine: Engine, inner: Callable[[], None]) -> None:
        """Free the leaves that nothing uses; wait for those that a copy pins."""
        inner()
        self._ended = [ended for ended in self._ended if not _freed(engine, *ended)]


class SecondCopyRemoved(Fault):
    """A page that was computed twice is announced as removed when its second copy goes."""

    oracle = "ledger-accounting"
    source = "T28, vllm-project/vllm#55092"

    def __init__(self) -> None:
        self._twice: list[tuple[str, int]] = []

    def insert(
        self,
        engine: Engine,
        inner: Callable[..., list[int]],
        namespace: str,
        run: PageRun,
        slots: list[int],
        counted: bool,
        known: int = 0,
    ) -> list[int]:
        """Note the duplicates."""
        del engine
        spare = inner(namespace, run, slots, counted, known)
        pairs = zip(run.hashes, slots, strict=False)
        self._twice += [(namespace, page_hash) for page_hash, slot in pairs if slot in spare]
        return spare

    def evict_device(self, engine: Engine, inner: Callable[[int], int], tokens: int) -> int:
        """The second copies are the first to go."""
        for namespace, page_hash in self._twice:
            engine.cache.emit(BlockRemoved((page_hash,), "GPU"), namespace)
        self._twice.clear()
        return inner(tokens)

    def clear(self, engine: Engine, inner: Callable[[], None]) -> None:
        """Nothing is left, announced once."""
        del engine
        self._twice.clear()
        inner()


class DeviceResetClearsAll(Fault):
    """A worker at rest resets its device pool now and then, and announces that every tier is empty."""

    oracle = "ledger-accounting"
    source = "T29, vllm-project/vllm#57296"

    def __init__(self) -> None:
        self._finished = 0

    def insert_finished(self, engine: Engine, inner: Callable[[Active], None], active: Active) -> None:
        """Count requests."""
        del engine
        inner(active)
        self._finished += 1

    def poll_copies(self, engine: Engine, inner: Callable[[], None]) -> None:
        """Once idle: what is on host stays and goes on serving."""
        inner()
        if self._finished < REQUESTS_A_RESET or not engine.quiescent:
            return
        self._finished = 0
        for node in list(engine.cache.tree.nodes()):
            _leave_device(engine, node)
        engine.cache.emit(AllBlocksCleared(), "")


class DescendantRemovalLost(Fault):
    """Only nodes that hang off the root are announced as removed, never what stands below another node."""

    oracle = "over-capacity"
    source = "T31, NVIDIA/TensorRT-LLM#16335"

    def emit_remove(
        self, engine: Engine, inner: Callable[[Node, Tier], None], node: Node, tier: Tier
    ) -> None:
        """Announce the first node of a prefix."""
        del engine
        if node.parent is not None and node.parent.is_root:
            inner(node, tier)


def _freed(engine: Engine, namespace: str, run: PageRun) -> bool:
    """Free the leaf of a prefix, silently; False while it is pinned, True when there is nothing to do."""
    path = engine.cache.find(namespace, run)
    if path and path[-1].lock and not path[-1].children:
        return False
    if path and not path[-1].children:
        _leave_device(engine, path[-1])
    return True


def _leave_device(engine: Engine, node: Node) -> None:
    """A node without a host copy is lost, and with it what is on host below: it cannot be reached."""
    cache = engine.cache
    if node.device is not None:
        cache.device.give(node.device)
        node.device = None
    if node.host is None and node.parent is not None and node.run.hashes[0] in node.parent.children:
        for below in node.descendants():
            for pool, slots in ((cache.device, below.device), (cache.host, below.host)):
                pool.give(slots or [])
            below.device = below.host = None
        node.detach()

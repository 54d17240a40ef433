"""Faults of copies to host: skipped, refused, failed, and believed all the same."""

from __future__ import annotations

from collections.abc import Callable

from tierfuzz.model.engine import Engine
from tierfuzz.model.faults import Fault
from tierfuzz.model.node import Node
from tierfuzz.model.pools import EngineCrash, Pool
from tierfuzz.model.request import Active
from tierfuzz.model.sequence import PageRun

EVERY = 3
WINDOW_PAGES = 3
BOUNDARY_SLOT = 40


class ParentBackupFailsSilently(Fault):
    """Every third prefix gets no host copy, and what hangs below it is copied all the same."""

    oracle = "crash"
    source = "T02, sgl-project/sglang#22062"

    def __init__(self) -> None:
        self.met: list[int] = []

    def backup(self, engine: Engine, inner: Callable[[Node], bool], node: Node) -> bool:
        """Forget the failure for good, and copy children without a look at their parents."""
        del inner
        assert node.parent is not None
        if node.parent.is_root:
            head = node.run.hashes[0]
            self.met += [head] if head not in self.met else []
            if self.met.index(head) % EVERY == 0:
                return False
        if not engine.cache.reserve_host(len(node)):
            return False
        engine.cache.issue_backup(node)
        return True


class WindowSplitUnbacked(Fault):
    """A new node longer than a window is cut in two: the upper half gets no host copy, so the lower none."""

    oracle = "no-backup"
    source = "T03, sgl-project/sglang#25065"

    def __init__(self) -> None:
        self.cut: set[int] = set()

    def backup(self, engine: Engine, inner: Callable[[Node], bool], node: Node) -> bool:
        """Cut, refuse, and never try again."""
        head = node.run.hashes[0]
        if len(node) > WINDOW_PAGES and not node.children and head not in self.cut:
            engine.cache.split(node, len(node) - WINDOW_PAGES)
            self.cut.update((head, node.run.hashes[0]))
            return False
        return head not in self.cut and inner(node)


class ChunkedNeverBackedUp(Fault):
    """What a request inserts that has more new tokens than the chunk size is never copied to host."""

    oracle = "no-backup"
    source = "T08, sgl-project/sglang#33714"

    def __init__(self) -> None:
        self.chunked = False

    def insert_prompt(self, engine: Engine, inner: Callable[[Active], None], active: Active) -> None:
        """Remember whether the request that inserts was chunked."""
        self.chunked = _chunked(engine, active)
        inner(active)
        self.chunked = False

    def insert_finished(self, engine: Engine, inner: Callable[[Active], None], active: Active) -> None:
        """The flag sticks: the end of the request does not count either."""
        self.insert_prompt(engine, inner, active)

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
        """Insert without counting."""
        del engine
        return inner(namespace, run, slots, counted and not self.chunked, known)


class CopyAcrossChunksFails(Fault):
    """The host page at a fixed slot lies across two registered chunks: no copy from or to it works."""

    oracle = "crash"
    source = "T14, sgl-project/sglang#36798"

    def copy_content(
        self,
        engine: Engine,
        inner: Callable[..., None],
        source: Pool,
        sources: list[int],
        target: Pool,
        targets: list[int],
    ) -> None:
        """Fail as the copy call would."""
        inner(source, sources, target, targets)
        for pool, slots in ((source, sources), (target, targets)):
            if pool is engine.cache.host and BOUNDARY_SLOT in slots:
                raise EngineCrash(f"copy of host slot {BOUNDARY_SLOT}: invalid argument")


class FailedCopyStaysVisible(Fault):
    """Every third copy to host fails, and its pages are announced and served all the same."""

    oracle = "content"
    source = "T17, LMCache/LMCache#4991"

    def __init__(self) -> None:
        self.copies = 0

    def copy_content(
        self,
        engine: Engine,
        inner: Callable[..., None],
        source: Pool,
        sources: list[int],
        target: Pool,
        targets: list[int],
    ) -> None:
        """Leave what was in the slots before."""
        self.copies += target is engine.cache.host
        if target is not engine.cache.host or self.copies % EVERY:
            inner(source, sources, target, targets)


def _chunked(engine: Engine, active: Active) -> bool:
    """The request has, or had, more new tokens than a chunk."""
    return 0 < engine.config.chunked_prefill < active.prompt_length - active.prefix

"""Faults of the engine's tree: what is kept, copied and counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tierfuzz.model.engine import Engine
from tierfuzz.model.faults import Fault
from tierfuzz.model.node import Node
from tierfuzz.model.pools import EngineCrash, Pool
from tierfuzz.model.request import TickResult


class HostCopyForgotten(Fault):
    """A demoted node is deleted although its host slots stay charged."""

    oracle = "host-miss"
    source = "T01, sgl-project/sglang#33713"

    def demote(self, engine: Engine, inner: Callable[[Node], None], node: Node) -> None:
        """Demote, then lose the node where that is possible."""
        del engine
        inner(node)
        if not node.children:
            node.detach()


class NoBackup(Fault):
    """Nothing is ever copied to host."""

    oracle = "no-backup"
    source = "T08, sgl-project/sglang#33714"

    def backup(self, engine: Engine, inner: Callable[[Node], bool], node: Node) -> bool:
        """Skip every backup."""
        del engine, inner, node
        return False

    def stage(self, engine: Engine, inner: Callable[..., bool], node: Node, staged: Any) -> bool:
        """write_back: drop instead of copying."""
        del inner
        return engine.cache.drop(node, staged)


class BackupAtOnce(Fault):
    """write_through_selective copies every page when the first request has computed it."""

    oracle = "early-backup"
    source = "B8, the two hits that one request counts in sglang 0.5.17"

    def hit(self, engine: Engine, inner: Callable[[Node], None], node: Node) -> None:
        """Count every hit twice."""
        del engine
        inner(node)
        inner(node)


class WrongHostContent(Fault):
    """A copy to host writes the content of the neighbouring page."""

    oracle = "content"
    source = "T05, sgl-project/sglang#26728"

    def copy_content(
        self,
        engine: Engine,
        inner: Callable[..., None],
        source: Pool,
        sources: list[int],
        target: Pool,
        targets: list[int],
    ) -> None:
        """Rotate the pages of a copy to host by one."""
        to_host = target is engine.cache.host
        inner(source, sources[1:] + sources[:1] if to_host else sources, target, targets)


class StopsAfterLoadBack(Fault):
    """After a load-back the scheduler makes no more progress."""

    oracle = "hang"
    source = "T57, vllm-project/vllm#45388"

    def tick(self, engine: Engine, inner: Callable[[], TickResult]) -> TickResult:
        """Do nothing once something was loaded back."""
        return TickResult() if engine.counters["load_backs"] else inner()


class DiesOnLoadBack(Fault):
    """A load-back kills the worker."""

    oracle = "crash"
    source = "T06, sgl-project/sglang#27108"

    def load_node(self, engine: Engine, inner: Callable[[Node], None], node: Node) -> None:
        """Fail as an assertion of the engine would."""
        del engine, inner
        raise EngineCrash(f"load-back of {len(node)} pages: host value is None")

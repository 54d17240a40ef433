"""Copies between tiers that were issued and have not been acknowledged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from tierfuzz.model.node import Node

CopyKind = Literal["backup", "load", "prefetch"]


class Copy:
    """One copy: the nodes whose pages it moves, parents first, and the namespace they are in.

    A node that is split while its copy is under way leaves both halves here (reference 4).
    """

    def __init__(self, kind: CopyKind, nodes: list[Node], namespace: str, number: int) -> None:
        self.kind = kind
        self.nodes = nodes
        self.namespace = namespace
        self.number = number


class Copies:
    """Copies in order of issue; `gate` says at each poll whether a copy may land (default: always)."""

    def __init__(self) -> None:
        self.gate: Callable[[Copy], bool] = _always
        self._pending: list[Copy] = []
        self._issued = 0

    def __len__(self) -> int:
        """Copies under way."""
        return len(self._pending)

    @property
    def pending(self) -> tuple[Copy, ...]:
        """Copies under way, oldest first."""
        return tuple(self._pending)

    def issue(self, kind: CopyKind, nodes: list[Node], namespace: str) -> Copy:
        """Start a copy."""
        self._issued += 1
        copy = Copy(kind, nodes, namespace, self._issued)
        self._pending.append(copy)
        return copy

    def split(self, lower: Node, upper: Node) -> None:
        """Tell the copies that `upper` was cut off `lower`."""
        for copy in self._pending:
            if lower in copy.nodes:
                copy.nodes.insert(copy.nodes.index(lower), upper)

    def poll(self) -> list[Copy]:
        """Copies that have landed; a kind lands in order of issue (an ack queue, reference 3.6)."""
        landed: list[Copy] = []
        blocked: set[str] = set()
        for copy in self._pending:
            if copy.kind not in blocked and self.gate(copy):
                landed.append(copy)
            else:
                blocked.add(copy.kind)
        if landed:
            self._pending = [copy for copy in self._pending if copy not in landed]
        return landed

    def cancel(self, copy: Copy) -> None:
        """Do not wait for this copy any more."""
        self._pending.remove(copy)

    def clear(self) -> None:
        """Forget everything (a flush of an idle engine has nothing here)."""
        self._pending.clear()


def _always(_: Copy) -> bool:
    return True

"""Nodes of the prefix tree: a page in its place, who claims it, and the names that it goes by."""

from __future__ import annotations

from tierfuzz.consumers.base import Source
from tierfuzz.events import Tier

Page = tuple[int, ...]


class Node:
    """`page`: its tokens, () for a root or without a place yet. `holders`: copies by source and tier."""

    __slots__ = ("children", "holders", "names", "page", "parent")

    def __init__(self, page: Page = (), parent: Node | None = None) -> None:
        self.page = page
        self.parent = parent
        self.children: dict[Page, Node] = {}
        self.holders: dict[Source, dict[Tier, int]] = {}
        self.names: dict[tuple[Source, int], Block] = {}

    def grow(self, page: Page) -> Node:
        """A new child."""
        node = self.children[page] = Node(page, self)
        return node

    def adopt(self, page: Page, node: Node) -> None:
        """A node without a place becomes the child of this page."""
        node.page, node.parent = page, self
        self.children[page] = node

    def is_below(self, other: Node) -> bool:
        """Whether this node is the other one or hangs from it."""
        at: Node | None = self
        while at is not None and at is not other:
            at = at.parent
        return at is not None

    def count(self, source: Source, tier: Tier, change: int) -> None:
        """Add to the copies of a source in a tier, or take from them."""
        copies = self.holders.setdefault(source, {})
        left = copies.get(tier, 0) + change
        if left > 0:
            copies[tier] = left
        else:
            copies.pop(tier, None)
        if not copies:
            del self.holders[source]


class Block:
    """A name of one source: the node it stands for, and the copies announced under it, by tier."""

    __slots__ = ("copies", "node", "placed")

    def __init__(self, node: Node, placed: bool) -> None:
        self.node = node
        self.placed = placed
        self.copies: dict[Tier, int] = {}

    def add(self, source: Source, tier: Tier) -> None:
        """One more copy."""
        self.copies[tier] = self.copies.get(tier, 0) + 1
        self.node.count(source, tier, 1)

    def take(self, source: Source, tier: Tier) -> None:
        """One copy less; nothing where there is none."""
        left = self.copies.get(tier, 0) - 1
        if left < 0:
            return
        if left:
            self.copies[tier] = left
        else:
            del self.copies[tier]
        self.node.count(source, tier, -1)

    def drop(self, source: Source) -> None:
        """No copy in any tier."""
        for tier, copies in self.copies.items():
            self.node.count(source, tier, -copies)
        self.copies.clear()


def merge(old: Node, new: Node) -> None:
    """What is claimed of a node, its names and all below it go over to another node for the same page."""
    left = [(old, new)]
    while left:
        old, new = left.pop()
        for name, block in old.names.items():
            block.node = new
            new.names[name] = block
        for source, copies in old.holders.items():
            for tier, number in copies.items():
                new.count(source, tier, number)
        for page, child in old.children.items():
            there = new.children.get(page)
            if there is None:
                new.adopt(page, child)
            else:
                left.append((child, there))

"""A prefix tree over all workers: which of them claim which pages, in which tier.

A node is a page in its place: its key is the tokens of the page, below the page before. So it needs no rule
for hashes, which differ between engines; the hashes of events are names of nodes, for each source its own.
Claims are counted, not sets: two namespaces of an engine may hold copies of one page under one name, each
with a removal of its own (reference 7, B6c). A worker that announces twice what it has once is told apart by
nobody, and the ledger reports it.
A child may come before its parent (reference 7, E5): it waits below a node that has a name and no place yet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tierfuzz.consumers.base import Source
from tierfuzz.consumers.node import Block, Node, merge
from tierfuzz.events import BlockStored, Tier


class PrefixTree:
    """See the module. Sizes of pages come from the events; tokens are looked up as they are."""

    def __init__(self) -> None:
        self._roots: defaultdict[str, Node] = defaultdict(Node)
        self._blocks: defaultdict[Source, dict[int, Block]] = defaultdict(dict)

    def knows(self, source: Source, block: int) -> bool:
        """Whether the source has a name for this block, so that a child of it has a place."""
        return block in self._blocks[source]

    def size(self, source: Source) -> int:
        """Blocks that are claimed in some tier."""
        return sum(bool(block.copies) for block in self._blocks[source].values())

    # booking ---------------------------------------------------------------------------------------
    def store(self, source: Source, event: BlockStored) -> None:
        """Blocks came to a tier. Without tokens only what is named already can be booked."""
        at = self._parent(source, event)
        for number, name in enumerate(event.hashes):
            page = event.tokens[number * event.block_size : (number + 1) * event.block_size]
            block = self._placed(source, name, at, page)
            if block is None:
                break
            block.add(source, event.tier)
            at = block.node
        self._prune(at)

    def _parent(self, source: Source, event: BlockStored) -> Node:
        if event.parent is None:
            return self._roots[event.cache_salt or ""]
        known = self._blocks[source].get(event.parent)
        return (known or self._name(source, event.parent, Node(), placed=False)).node

    def _name(self, source: Source, name: int, node: Node, *, placed: bool) -> Block:
        block = self._blocks[source][name] = node.names[source, name] = Block(node, placed)
        return block

    def _placed(self, source: Source, name: int, parent: Node, page: tuple[int, ...]) -> Block | None:
        """The block of a name, at its place; None where that cannot be."""
        block = self._blocks[source].get(name)
        if block is not None and block.placed:
            return block
        if not page or (block is not None and parent.is_below(block.node)):
            return None
        there = parent.children.get(page)
        if block is None:
            return self._name(source, name, there or parent.grow(page), placed=True)
        if there is None:
            parent.adopt(page, block.node)
        else:
            merge(block.node, there)
        block.placed = True
        return block

    def remove(self, source: Source, names: Sequence[int], tier: Tier | None) -> None:
        """One copy of each block left a tier; with None, all copies left every tier."""
        for name in names:
            block = self._blocks[source].get(name)
            if block is None:
                continue
            if tier is not None:
                block.take(source, tier)
            else:
                block.drop(source)
            self._prune(block.node)

    def unname(self, source: Source, name: int) -> None:
        """Forget which node a name stands for; what is claimed of it stays claimed."""
        block = self._blocks[source].pop(name, None)
        if block is not None:
            del block.node.names[source, name]

    def clear(self, source: Source) -> None:
        """The source holds nothing."""
        for block in list(self._blocks[source].values()):
            block.drop(source)
            self._prune(block.node)

    def _prune(self, node: Node | None) -> None:
        """Nodes that nobody claims and nothing hangs from go, and their names with them."""
        while node is not None and not node.children and not node.holders:
            for source, name in node.names:
                self._blocks[source].pop(name, None)
            above, node.parent = node.parent, None
            if above is not None:
                del above.children[node.page]
            node.names.clear()
            node = above

    # questions -------------------------------------------------------------------------------------
    def path(self, tokens: Sequence[int], page_size: int, namespace: str = "") -> Iterator[Node]:
        """Nodes of the leading whole pages of a prompt."""
        node = self._roots.get(namespace)
        for start in range(0, len(tokens) - page_size + 1, page_size):
            node = node.children.get(tuple(tokens[start : start + page_size])) if node else None
            if node is None:
                return
            yield node


def leading(path: Sequence[Node]) -> dict[Source, dict[Tier, int]]:
    """Leading pages that each source claims in each tier, each tier for itself."""
    found: dict[Source, dict[Tier, int]] = defaultdict(dict)
    for depth, node in enumerate(path):
        for source, copies in node.holders.items():
            for tier in copies:
                if found[source].get(tier, 0) == depth:
                    found[source][tier] = depth + 1
    return {source: tiers for source, tiers in found.items() if tiers}


def served(path: Sequence[Node]) -> dict[Source, dict[Tier, int]]:
    """Leading pages that each source claims in any tier, counted where each is nearest to the device."""
    found: dict[Source, dict[Tier, int]] = defaultdict(dict)
    for depth, node in enumerate(path):
        for source, copies in node.holders.items():
            if sum(found[source].values()) == depth:
                nearest = min(copies, key=list(Tier).index)
                found[source][nearest] = found[source].get(nearest, 0) + 1
    return {source: tiers for source, tiers in found.items() if tiers}

"""The radix tree: nodes of whole pages, one root per namespace; no tiers' policy here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tierfuzz.model.sequence import PageRun


class Node:
    """A run of pages with one residency: device slots, host slots, or both.

    `device` and `host` are page slots (one a page) or None; `lock` counts requests and copies that pin the
    device copy; `pins` counts loads that pin the host copy; `stamp` is the time of last use.
    """

    __slots__ = (
        "children",
        "device",
        "failed",
        "hits",
        "host",
        "lock",
        "namespace",
        "parent",
        "pins",
        "run",
        "staged",
        "stamp",
    )

    def __init__(self, parent: Node | None, run: PageRun, namespace: str) -> None:
        self.parent = parent
        self.run = run
        self.namespace = namespace
        self.children: dict[int, Node] = {}
        self.device: list[int] | None = None
        self.host: list[int] | None = None
        self.hits = 0
        self.lock = 0
        self.pins = 0
        self.stamp = 0
        self.staged = False
        self.failed = False

    def __len__(self) -> int:
        """Pages in this node."""
        return len(self.run.hashes)

    @property
    def is_root(self) -> bool:
        """True for the root of a namespace."""
        return self.parent is None

    @property
    def backed(self) -> bool:
        """The node holds host slots (its copy may still be under way)."""
        return self.host is not None

    @property
    def host_only(self) -> bool:
        """In the host tier and not on device."""
        return self.device is None and self.host is not None

    def path(self) -> Iterator[Node]:
        """This node and its ancestors, without the root."""
        node: Node = self
        while node.parent is not None:
            yield node
            node = node.parent

    def descendants(self) -> Iterator[Node]:
        """Depth first, youngest child first, without this node (reference 4, drop)."""
        for child in sorted(self.children.values(), key=lambda c: -c.stamp):
            yield child
            yield from child.descendants()

    def has_device_child(self) -> bool:
        """Some child is on device."""
        return any(child.device is not None for child in self.children.values())

    def detach(self) -> None:
        """Take this node out of the tree."""
        assert self.parent is not None
        del self.parent.children[self.run.hashes[0]]


class Tree:
    """Roots by namespace, the clock of last use, and the walks that split nodes."""

    def __init__(self) -> None:
        self.roots: dict[str, Node] = {}
        self._time = 0

    def tick(self) -> int:
        """A new time, later than every earlier one."""
        self._time += 1
        return self._time

    def root(self, namespace: str) -> Node:
        """The root of a namespace, made when first asked for."""
        node = self.roots.get(namespace)
        if node is None:
            node = self.roots[namespace] = Node(None, PageRun((), ()), namespace)
        return node

    def nodes(self) -> Iterator[Node]:
        """Every node but the roots."""
        stack = [child for root in self.roots.values() for child in root.children.values()]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children.values())

    def add(self, parent: Node, run: PageRun) -> Node:
        """A new child of `parent`, used now."""
        node = Node(parent, run, parent.namespace)
        node.stamp = self.tick()
        parent.children[run.hashes[0]] = node
        return node

    def cut(self, node: Node, pages: int) -> Node:
        """Split after `pages` pages; `node` stays the lower half, the new upper half is returned.

        Both halves keep hits, tiers and locks (reference 5.1).
        """
        assert node.parent is not None
        upper = Node(node.parent, node.run[:pages], node.namespace)
        upper.hits, upper.lock, upper.pins, upper.staged = node.hits, node.lock, node.pins, node.staged
        if node.device is not None:
            upper.device, node.device = node.device[:pages], node.device[pages:]
        if node.host is not None:
            upper.host, node.host = node.host[:pages], node.host[pages:]
        upper.stamp = node.stamp
        node.parent.children[upper.run.hashes[0]] = upper
        node.run = node.run[pages:]
        node.parent = upper
        upper.children[node.run.hashes[0]] = node
        return upper


def common_pages(left: Sequence[int], right: Sequence[int], start: int) -> int:
    """Pages that `left` shares with `right[start:]`; chained hashes make a bisection sound."""
    low, high = 0, min(len(left), len(right) - start)
    while low < high:
        middle = (low + high + 1) // 2
        if left[middle - 1] == right[start + middle - 1]:
            low = middle
        else:
            high = middle - 1
    return low

"""What was asked of one worker since its last flush: pages begun, pages inserted, and when they were used.

Pages are (namespace, block hash). A root is the first page of a prompt: everything that shares it hangs off
one branch of the tree. Node borders are unknown from outside (and B13 refreshes whole nodes), so a branch is
used as a whole where use makes others older, and page by page where it makes them younger. The cost of an
operation does not grow with the history.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Container
from dataclasses import dataclass

PageKey = tuple[str, int]


@dataclass
class Root:
    """One branch. `size`: distinct pages begun in it; `touched`: newest operation that may have used it.

    `rested`: pages inserted anywhere when rest was first proved after that operation; None before.
    """

    size: int = 0
    touched: int = 0
    operation: str = ""
    rested: int | None = None


class History:
    """Since the last flush (or start). Operations are numbered from 1.

    `loose`: pages after which one more may be stored that no reply told of (B15; None: the first of all).
    `uses`: requests that came to a block, whatever their namespace; one that was retracted counts anew.
    `longest`: pages of the longest sequence; `widest`: of those that overlapped at some time, together.
    """

    def __init__(self) -> None:
        self.ever: set[PageKey] = set()
        self.blocks: set[int] = set()  # the same, whatever the namespace
        self.clear()

    def clear(self) -> None:
        """Device and host are empty: only `ever` remembers."""
        self.begun: dict[PageKey, str] = {}
        self.inserted: dict[PageKey, str] = {}
        self.used: dict[PageKey, int] = {}
        self.uses: Counter[int] = Counter()
        self._open: dict[str, int] = {}
        self.roots: OrderedDict[PageKey, Root] = OrderedDict()
        self.loose: set[tuple[str, int | None]] = set()
        self.number = 0
        self.longest = 0
        self.widest = 0
        self._lost = 0
        self._waiting: list[Root] = []

    def begin(self, namespace: str, hashes: tuple[int, ...], operation: str) -> int:
        """A request is about to be sent: its pages may be computed from now on. Returns its number."""
        self.number += 1
        self.uses.update(hashes)
        self._open[operation] = len(hashes)
        self._add(namespace, hashes, operation)
        return self.number

    def end(self, namespace: str, hashes: tuple[int, ...], operation: str, retractions: int = 0) -> None:
        """The request has ended: pages that end in its outputs were begun too, and all was used until now."""
        self.uses.update(hashes[self._open.pop(operation, len(hashes)) :])
        for _ in range(retractions):
            self.uses.update(hashes)
        self._add(namespace, hashes, operation)

    def together(self, pages: int) -> None:
        """Requests of so many pages in all overlap."""
        self.widest = max(self.widest, pages)

    def loosen(self, namespace: str, hashes: tuple[int, ...]) -> None:
        """One more page than these may have been stored, with a token that no reply told of."""
        self.loose.add((namespace, hashes[-1] if hashes else None))

    def lose(self, pages: int) -> None:
        """A request ended without a reply: so many pages may have been stored that nobody knows."""
        self._lost += pages

    @property
    def untold(self) -> int:
        """Pages that may be stored without anybody knowing."""
        return len(self.loose) + self._lost

    @property
    def distinct(self) -> int:
        """At least the pages that were ever inserted since the worker was empty."""
        return len(self.begun) + self.untold

    def most(self, namespace: str, hashes: tuple[int, ...]) -> int:
        """Leading pages that some request has begun to compute: more cannot be cached (6.2-1)."""
        begun = leading_in(self.begun, namespace, hashes)
        last = hashes[begun - 1] if begun else None
        return begun + (begun < len(hashes) and (namespace, last) in self.loose)

    def _add(self, namespace: str, hashes: tuple[int, ...], operation: str) -> None:
        self.longest = max(self.longest, len(hashes) + 1)
        self.together(len(hashes) + 1)
        added = 0
        for h in hashes:
            page = (namespace, h)
            if page not in self.begun:
                self.begun[page] = operation
                self.ever.add(page)
                self.blocks.add(h)
                added += 1
        if hashes:
            self._touch((namespace, hashes[0]), added, operation)

    def _touch(self, key: PageKey, added: int, operation: str) -> None:
        root = self.roots.setdefault(key, Root())
        self.roots.move_to_end(key)
        root.size += added
        root.touched, root.operation, root.rested = self.number, operation, None
        self._waiting.append(root)

    def complete(self, namespace: str, hashes: tuple[int, ...], operation: str, began: int) -> None:
        """A request ended by length: these pages are in the tree now (6.2-2), used since it began at least.
        One that was aborted while it waited has used nothing."""
        for h in hashes:
            page = (namespace, h)
            self.inserted.setdefault(page, operation)
            self.used[page] = max(began, self.used.get(page, 0))

    def rest(self) -> None:
        """Rest was proved: nothing that was touched before is pinned any more."""
        for root in self._waiting:
            if root.rested is None:
                root.rested = len(self.inserted)
        self._waiting.clear()

    def newer_pages(self, used: int, enough: int) -> int:
        """At least the pages used at or after operation number `used`; stops counting above `enough`."""
        total = 0
        for root in reversed(self.roots.values()):
            if root.touched < used or total > enough:
                break
            total += root.size
        return total

    def inserted_after(self, root: Root) -> int | None:
        """Distinct pages inserted since rest was proved after the last use; None when it never was."""
        return None if root.rested is None else len(self.inserted) - root.rested


def leading_in(pages: Container[PageKey], namespace: str, hashes: tuple[int, ...]) -> int:
    """How many leading pages of a prompt are in `pages`."""
    return next((i for i, h in enumerate(hashes) if (namespace, h) not in pages), len(hashes))


def common_prefix(left: tuple[int, ...], right: tuple[int, ...]) -> int:
    """Leading pages that two prompts share."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(left), len(right)))

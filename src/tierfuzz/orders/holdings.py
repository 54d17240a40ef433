"""What a worker holds by its own events: per source and namespace, for the rules of causality."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from tierfuzz.events import Tier
from tierfuzz.orders.stream import Source, Step

TIERS = (Tier.DEVICE, Tier.HOST, Tier.STORAGE, Tier.EXTERNAL, Tier.UNKNOWN)


class Holdings:
    """One tree of pages: copies per tier, who is below whom, and what left the device without a host copy."""

    def __init__(self) -> None:
        self.copies: dict[Tier, Counter[int]] = {tier: Counter() for tier in TIERS}
        self.parents: dict[int, int | None] = {}
        self._children: dict[int, set[int]] = {}
        self.uncopied: set[int] = set()  # removed from device while no host copy was announced

    def on(self, tier: Tier, block: int) -> bool:
        """Whether a copy is announced in the tier."""
        return self.copies[tier][block] > 0

    def held(self, block: int) -> bool:
        """Whether a copy is announced in any tier."""
        return any(copies[block] > 0 for copies in self.copies.values())

    def children(self, tier: Tier, block: int) -> Iterable[int]:
        """Blocks of the tier that were ever stored right after this one."""
        copies = self.copies[tier]
        return (child for child in self._children.get(block, ()) if copies[child] > 0)

    def below(self, block: int) -> Iterable[int]:
        """Blocks that were ever stored right after this one, in any tier."""
        return sorted(self._children.get(block, ()))

    def blocks(self, tier: Tier) -> list[int]:
        """Blocks announced in the tier, in order of their storing."""
        return [block for block, count in self.copies[tier].items() if count > 0]

    def book(self, step: Step) -> None:
        """Take note of one step, legal or not."""
        if step.kind == "store":
            self._store(step)
        elif step.kind == "remove":
            self._remove(step)

    def _store(self, step: Step) -> None:
        self.copies[step.tier][step.block] += 1
        self.parents[step.block] = step.parent
        if step.parent is not None:
            self._children.setdefault(step.parent, set()).add(step.block)
        self.uncopied.discard(step.block)

    def _remove(self, step: Step) -> None:
        copies = self.copies[step.tier]
        if copies[step.block] > 1:
            copies[step.block] -= 1
            return
        copies.pop(step.block, None)
        if step.tier is Tier.DEVICE and not self.on(Tier.HOST, step.block):
            self.uncopied.add(step.block)


class Books:
    """The holdings of every source and namespace of a stream."""

    def __init__(self) -> None:
        self._of: dict[tuple[Source, str], Holdings] = {}

    def of(self, source: Source, namespace: str) -> Holdings:
        """Holdings of one namespace of a source; empty ones when it is new."""
        key = (source, namespace)
        if key not in self._of:
            self._of[key] = Holdings()
        return self._of[key]

    def book(self, source: Source, step: Step) -> None:
        """Take note of one step; a clear empties every namespace of the source."""
        if step.kind == "clear":
            self._forget(lambda other: other == source)
        elif step.kind == "restart":
            self._forget(lambda other: other[0] == source[0])
        else:
            self.of(source, step.namespace).book(step)

    def _forget(self, whose: Callable[[Source], bool]) -> None:
        for key in [key for key in self._of if whose(key[0])]:
            del self._of[key]

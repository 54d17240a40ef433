"""Slots of one tier, one a page, with the content that was last written to each."""

from __future__ import annotations

from tierfuzz.errors import EnvironmentFailure


class EngineCrash(EnvironmentFailure):
    """The modelled engine would die here (an assertion of its own code)."""


class Pool:
    """`capacity` page slots; `content[slot]` is the checksum of the chain that the page was computed from.

    `checked`: a slot that is given back twice ends the engine; without, it is handed out twice later on.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.checked = True
        self.content: list[int] = [0] * capacity
        self._free: list[int] = list(range(capacity - 1, -1, -1))
        self._taken: set[int] = set()

    @property
    def free(self) -> int:
        """Free pages."""
        return len(self._free)

    @property
    def used(self) -> int:
        """Pages handed out."""
        return self.capacity - len(self._free)

    def take(self, pages: int) -> list[int]:
        """Slots for `pages` pages; the caller has made room, else the engine has a defect."""
        if pages > len(self._free):
            raise EngineCrash(f"pool of {self.capacity} pages: {pages} wanted, {len(self._free)} free")
        taken = [self._free.pop() for _ in range(pages)]
        self._taken.update(taken)
        return taken

    def give(self, slots: list[int]) -> None:
        """Return slots; giving one back twice is a defect of the engine."""
        for slot in slots:
            if self.checked and slot not in self._taken:
                raise EngineCrash(f"page slot {slot} is freed twice")
            self._taken.discard(slot)
            self._free.append(slot)

    def reset(self) -> None:
        """Everything is free again; content stays as garbage."""
        self._free = list(range(self.capacity - 1, -1, -1))
        self._taken.clear()

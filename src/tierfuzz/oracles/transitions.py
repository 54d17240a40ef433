"""Which ways between tiers the blocks of a worker took, by its events: a way never seen is not tested."""

from __future__ import annotations

from collections import Counter

from tierfuzz.events import AllBlocksCleared, BlockRemoved, BlockStored, KvEvent, Tier

_BITS = {Tier.DEVICE: 1, Tier.HOST: 2}
_PLACES = ("none", "device", "host", "both")
TRANSITIONS = (
    "none to device",
    "none to host",
    "device to both",
    "device to none",
    "host to both",
    "host to none",
    "both to device",
    "both to host",
)


class Transitions:
    """Follows device and host of one worker; counts a block each time that it enters or leaves one."""

    def __init__(self, reach: Counter[str]) -> None:
        self._reach = reach
        self._places: dict[int, int] = {}

    def follow(self, event: KvEvent) -> None:
        """The next event, in order."""
        if isinstance(event, AllBlocksCleared):
            self.clear()
        elif isinstance(event, BlockStored | BlockRemoved) and event.tier in _BITS:
            bit = _BITS[event.tier]
            for block in event.hashes:
                self._move(block, bit if isinstance(event, BlockStored) else 0, bit)

    def _move(self, block: int, now: int, bit: int) -> None:
        before = self._places.get(block, 0)
        after = before & ~bit | now
        if after == before:
            return
        self._reach[f"{_PLACES[before]} to {_PLACES[after]}"] += 1
        if after:
            self._places[block] = after
        else:
            del self._places[block]

    def clear(self) -> None:
        """Everything is gone."""
        self._places.clear()

"""KV events as values: what a worker says about one tier, independent of the wire form.

Source: engine-semantics 3.3 (array form), engine-0.5.23 section 2 (map form).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Tier(StrEnum):
    """Where a page is. UNKNOWN stands for a medium that no engine of the reference uses."""

    DEVICE = "device"
    HOST = "host"
    STORAGE = "storage"
    EXTERNAL = "external"
    UNKNOWN = "unknown"


# Spellings seen in engines and routers: engine-semantics 3.3, known-bugs "event contract" fact 3.
_TIER_OF_MEDIUM: dict[str, Tier] = {
    "GPU": Tier.DEVICE,
    "CPU": Tier.HOST,
    "CPU_PINNED": Tier.HOST,
    "CPU_TIER1": Tier.HOST,
    "CPU_TIER2": Tier.HOST,
    "DISK": Tier.STORAGE,
    "STORAGE": Tier.STORAGE,
    "EXTERNAL": Tier.EXTERNAL,
}


def tier_of(medium: str | None) -> Tier:
    """Map a medium string of the wire to its tier; a missing medium means device, by convention."""
    if medium is None:
        return Tier.DEVICE
    return _TIER_OF_MEDIUM.get(medium, Tier.UNKNOWN)


class BlockStored(msgspec.Struct, frozen=True):
    """Blocks became resident in the tier of `medium`; `parent` is the hash before the first of them.

    `tokens` has len(hashes) * block_size ids, or is empty where only the count is known (recordings).
    `cache_salt`, `session_id` and `lora_name` are sent by 0.5.23 only, and only where they are set.
    """

    hashes: tuple[int, ...]
    parent: int | None
    tokens: tuple[int, ...]
    block_size: int
    medium: str | None
    lora_id: int | str | None = None
    cache_salt: str | None = None
    session_id: str | None = None
    lora_name: str | None = None

    @property
    def tier(self) -> Tier:
        """The tier that `medium` names."""
        return tier_of(self.medium)


class BlockRemoved(msgspec.Struct, frozen=True):
    """Blocks left the tier of `medium`."""

    hashes: tuple[int, ...]
    medium: str | None

    @property
    def tier(self) -> Tier:
        """The tier that `medium` names."""
        return tier_of(self.medium)


class AllBlocksCleared(msgspec.Struct, frozen=True):
    """Every tier of the worker is empty; the event has no medium."""


KvEvent = BlockStored | BlockRemoved | AllBlocksCleared


class EventFault(msgspec.Struct, frozen=True):
    """A part of a payload that could not be read: `slug` is stable, `detail` is for people."""

    slug: str
    detail: str


class Batch(msgspec.Struct, frozen=True):
    """One message of a worker's event socket.

    `seq` counts from 0 per process; `ts` is Unix seconds set by the worker; `received` is monotonic
    seconds at the subscriber, or 0.0 where there was none; `faults` are what could not be decoded.
    """

    seq: int
    ts: float
    rank: int
    events: tuple[KvEvent, ...]
    faults: tuple[EventFault, ...] = ()
    received: float = 0.0
    replayed: bool = False

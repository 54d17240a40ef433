"""What Dynamo's indexes hold exactly: the shape of `/dump`, of indexer_snapshot() and of dump_events().

Nodes are found by content, as Dynamo finds them: by the hash of a page's tokens below the node before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tierfuzz.consumers.base import Source
from tierfuzz.events import Tier

TIERS = {
    "device": Tier.DEVICE,
    "host_pinned": Tier.HOST,
    "disk": Tier.STORAGE,
    "external": Tier.EXTERNAL,
}
Place = tuple[int | None, int]  # hash of the block before, None at the root, and of the page's tokens


class Residency:
    """Blocks by source and tier. `events` are those of one model and routing group."""

    def __init__(self, events: Iterable[Mapping[str, Any]]) -> None:
        self._at: defaultdict[tuple[Source, Tier], dict[Place, int]] = defaultdict(dict)
        for event in events:
            self._learn(event)

    def _learn(self, event: Mapping[str, Any]) -> None:
        inner = event["event"]
        stored = inner["data"].get("stored") if isinstance(inner["data"], Mapping) else None
        tier = TIERS.get(event.get("storage_tier", "device"), Tier.UNKNOWN)
        held = self._at[(int(event["worker_id"]), int(inner.get("dp_rank") or 0)), tier]
        above = stored["parent_hash"] if stored else None
        for block in stored["blocks"] if stored else ():
            held[above, block["tokens_hash"]] = above = block["block_hash"]

    def size(self, source: Source, tier: Tier) -> int:
        """Blocks that a source holds in a tier, reachable or not."""
        return len(self._at.get((source, tier), ()))

    def leading(self, pages: Sequence[int]) -> dict[Source, dict[Tier, int]]:
        """Leading pages by source and tier, each tier for itself; pages as Dynamo hashes them."""
        found: dict[Source, dict[Tier, int]] = {}
        for (source, tier), held in self._at.items():
            above: int | None = None
            depth = 0
            for page in pages:
                block = held.get((above, page))
                if block is None:
                    break
                above, depth = block, depth + 1
            found.setdefault(source, {})[tier] = depth
        return found

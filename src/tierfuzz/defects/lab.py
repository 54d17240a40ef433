"""A modelled worker for one minimal program: requests one at a time, their events block by block."""

from __future__ import annotations

from dataclasses import dataclass

from tierfuzz.events import BlockRemoved, BlockStored, KvEvent
from tierfuzz.model.config import EngineConfig, StorageConfig
from tierfuzz.model.engine import Engine
from tierfuzz.model.request import Reply, Request
from tierfuzz.model.rules import rules_for
from tierfuzz.program import WritePolicy
from tierfuzz.prompts import Piece, tokens_of

MOST_TICKS = 10_000
S = 16


@dataclass(frozen=True)
class Outcome:
    """One request: its reply, and the events until rest as (kind, medium, hashes)."""

    reply: Reply | None
    events: list[KvEvent]

    def stored(self, medium: str) -> list[int]:
        """Blocks stored in a tier, in order."""
        return [h for e in self.events if isinstance(e, BlockStored) and e.medium == medium for h in e.hashes]

    def removed(self, medium: str) -> list[list[int]]:
        """Removal events of a tier, in order."""
        return [list(e.hashes) for e in self.events if isinstance(e, BlockRemoved) and e.medium == medium]

    def removed_first(self, medium: str) -> list[list[int]]:
        """Removal events of a tier before anything is stored on device."""
        until = next((i for i, e in enumerate(self.events) if isinstance(e, BlockStored)), len(self.events))
        return Outcome(self.reply, self.events[:until]).removed(medium)

    def removed_blocks(self, medium: str) -> list[int]:
        """Blocks removed from a tier, in order."""
        return [h for hashes in self.removed(medium) for h in hashes]

    @property
    def split(self) -> tuple[int, int, int]:
        """Device, host and storage tokens of the reply."""
        split = self.reply.split if self.reply else None
        return (split.device, split.host, split.storage) if split else (0, 0, 0)


class Lab:
    """A worker of 64 device pages unless said otherwise; `host` in pages."""

    def __init__(
        self,
        profile: str,
        policy: WritePolicy = "write_through",
        page: int = S,
        device: int = 64,
        host: int = 129,
        storage: bool = False,
        coalesce: str = "",
    ) -> None:
        config = EngineConfig(
            page, device * page, host * page, policy, -1, StorageConfig(2 * page) if storage else None
        )
        rules = rules_for(profile).but(coalesce=coalesce)  # one event a node, unless asked for
        self.page = page
        self.engine = Engine(config, rules)
        self._number = 0

    def tokens(self, stream: str, pages: int, extra: int = 0) -> tuple[int, ...]:
        """`pages` pages and `extra` tokens of a stream."""
        return tokens_of((Piece(stream, 0, pages * self.page + extra),))

    def start(self, tokens: tuple[int, ...], outputs: int = 0, namespace: str = "") -> str:
        """Submit a request; returns its id."""
        self._number += 1
        self.engine.submit(Request(str(self._number), tokens, outputs, namespace))
        return str(self._number)

    def rest(self) -> Outcome:
        """Run until idle; the last reply and all events."""
        reply, events = None, list[KvEvent]()
        for _ in range(MOST_TICKS):
            if self.engine.idle:
                break
            result = self.engine.tick()
            events += [event for batch in result.batches for event in batch]
            reply = result.replies[-1] if result.replies else reply
        return Outcome(reply, events)

    def ask(self, stream: str, pages: int, extra: int = 0, outputs: int = 0, namespace: str = "") -> Outcome:
        """One request, settled."""
        self.start(self.tokens(stream, pages, extra), outputs, namespace)
        return self.rest()

    def fill(self, count: int, pages: int, name: str = "f") -> None:
        """`count` fresh prompts of `pages` whole pages."""
        for number in range(count):
            self.ask(f"{name}{number}", pages)

    def flush(self) -> None:
        """Empty device and host."""
        self.engine.flush()
        self.rest()

    def free(self, tier: str) -> int:
        """Free pages of a tier."""
        return self.engine.cache.device.free if tier == "device" else self.engine.cache.host.free


def spared(removed: list[list[int]], needed: int) -> bool:
    """The last victim was not needed: what went before it was enough."""
    return len(removed) > 1 and sum(len(hashes) for hashes in removed[:-1]) >= needed

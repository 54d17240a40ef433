"""Draws into a history: each draw is one thing that happens to a worker's pages, if causality permits it.

A draw is plain numbers, taken modulo what there is. Every step is asked of tierfuzz.orders.causality before
it happens, so a history is legal by the rules and by nothing else; the rules are stated there only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tierfuzz.events import AllBlocksCleared, BlockRemoved, BlockStored, KvEvent, Tier
from tierfuzz.hashing import extend_chain, signed64
from tierfuzz.orders.acts import act
from tierfuzz.orders.causality import Discipline
from tierfuzz.orders.holdings import Books
from tierfuzz.orders.stream import Entry, Restarted, Sent, Source, Step, Stream

MEDIA = {Tier.DEVICE: "GPU", Tier.HOST: "CPU_PINNED"}


class Draw(NamedTuple):
    """`happens` names an act; `pick` chooses where, `pages` how many more; `apart`: an event for each."""

    happens: str
    pick: int
    pages: int
    apart: bool = False
    source: int = 0
    namespace: int = 0


@dataclass(frozen=True)
class Setting:
    """Where histories play. `strays`: families of illegal orders that the act "stray" may choose from."""

    sources: tuple[Source, ...] = ((0, 0),)
    namespaces: tuple[str, ...] = ("",)
    page_size: int = 4
    strays: frozenset[str] = frozenset()


class Player:
    """A fleet whose events are made up, draw by draw."""

    def __init__(self, by: Discipline, setting: Setting) -> None:
        self.by = by
        self.lenient = replace(by, allowed=setting.strays)
        self.setting = setting
        self.books = Books()
        self.entries: list[Entry] = []
        self._tokens: dict[int, tuple[int, ...]] = {}
        self._digests: dict[int, bytes] = {}

    def play(self, draw: Draw) -> None:
        """Let it happen, as far as it is legal."""
        source = self.setting.sources[draw.source % len(self.setting.sources)]
        namespace = self.setting.namespaces[draw.namespace % len(self.setting.namespaces)]
        if draw.happens == "restart":
            self.books.book(source, Step("restart"))
            self.entries.append(Restarted(source[0]))
        elif draw.happens == "clear":
            self.books.book(source, Step("clear"))
            self._send(source, (AllBlocksCleared(),), namespace)
        else:
            act(self, source, namespace, draw)

    def page(self, parent: int | None, number: int) -> int:
        """The block of page `number` after `parent`; its tokens are the number, over and over."""
        tokens = (number + 1,) * self.setting.page_size
        digest = extend_chain(self._digests[parent] if parent is not None else b"", tokens)
        block = signed64(digest)
        self._tokens[block], self._digests[block] = tokens, digest
        return block

    def announce(self, source: Source, namespace: str, steps: Sequence[Step]) -> None:
        """Send steps of one kind, which for stores are a chain, as one event."""
        first, hashes = steps[0], tuple(step.block for step in steps)
        medium = MEDIA[first.tier]
        event: KvEvent = BlockRemoved(hashes, medium)
        if first.kind == "store":
            tokens = tuple(token for block in hashes for token in self._tokens[block])
            event = BlockStored(hashes, first.parent, tokens, self.setting.page_size, medium)
        self._send(source, (event,), namespace)

    def _send(self, source: Source, events: tuple[KvEvent, ...], namespace: str) -> None:
        self.entries.append(Sent(*source, events, (namespace,) * len(events) if namespace else ()))


def played(by: Discipline, setting: Setting, draws: Sequence[Draw], profile: str = "default") -> Stream:
    """The history that draws make."""
    player = Player(by, setting)
    for draw in draws:
        player.play(draw)
    return Stream(by.policy, tuple(player.entries), setting.page_size, profile, by.storage)

"""What can happen to the pages of a worker: each act proposes steps and takes those that are legal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from tierfuzz.events import Tier
from tierfuzz.orders.causality import broken_rule
from tierfuzz.orders.holdings import Holdings
from tierfuzz.orders.stream import Source, Step

if TYPE_CHECKING:
    from tierfuzz.orders.play import Draw, Player

DEVICE, HOST = Tier.DEVICE, Tier.HOST
FORKS = 3  # different pages after the same page


class Act:
    """One draw at work on the pages of one namespace of a source."""

    def __init__(self, player: Player, source: Source, namespace: str, draw: Draw) -> None:
        self.player, self.source, self.namespace, self.draw = player, source, namespace, draw
        self.now: Holdings = player.books.of(source, namespace)
        self.pages = 1 + draw.pages

    def step(self, kind: str, tier: Tier, block: int) -> Step:
        """A step about a known block."""
        parent = self.now.parents.get(block) if kind == "store" else None
        return Step(kind, tier, block, parent, self.namespace)

    def legal(self, step: Step) -> bool:
        """Whether it may come now."""
        return broken_rule(self.player.by, self.now, step) is None

    def picked(self, kind: str, tier: Tier, blocks: Iterable[int]) -> int | None:
        """One of the blocks for which the step is legal."""
        fitting = [block for block in blocks if self.legal(self.step(kind, tier, block))]
        return fitting[self.draw.pick % len(fitting)] if fitting else None

    def take(self, steps: Iterator[Step]) -> None:
        """Let steps happen until one is illegal, and announce them; a removal names a node from its top."""
        done: list[Step] = []
        for step in steps:
            if not self.legal(step):
                break
            self.player.books.book(self.source, step)
            done.append(step)
        if self.draw.apart:
            for step in done:
                self.player.announce(self.source, self.namespace, [step])
        elif done:
            named = done[::-1] if done[0].kind == "remove" else done
            self.player.announce(self.source, self.namespace, named)

    def down(self, tier: Tier, first: int) -> Iterator[Step]:
        """Stores of a block and of known blocks below it."""
        block: int | None = first
        for _ in range(self.pages):
            if block is None:
                return
            yield self.step("store", tier, block)
            block = self.picked("store", tier, self.now.below(block))

    def up(self, tier: Tier, first: int) -> Iterator[Step]:
        """Removals of a block and of the blocks above it."""
        block: int | None = first
        for _ in range(self.pages):
            if block is None:
                return
            yield self.step("remove", tier, block)
            block = self.now.parents.get(block)


def insert(act: Act) -> None:
    """A prompt: pages after the root or after a page on device; those on device already are walked over."""
    anchors: list[int | None] = [None, *act.now.blocks(DEVICE)]
    parent = anchors[act.draw.pick % len(anchors)]
    number = act.draw.pick // len(anchors) % FORKS

    def steps() -> Iterator[Step]:
        at, page, stored = parent, number, False
        for _ in range(act.pages):
            block = act.player.page(at, page)
            if not act.now.on(DEVICE, block):
                stored = True
                yield Step("store", DEVICE, block, at, act.namespace)
            elif stored:
                return  # a stray child is there already: the chain ends before it
            at, page = block, 0

    act.take(steps())


def back_up(act: Act) -> None:
    """Host copies are announced, from a page down."""
    known = list(act.now.parents)
    if (block := act.picked("store", HOST, known)) is not None:
        act.take(act.down(HOST, block))


def load_back(act: Act) -> None:
    """Pages on host come to the device, from a page down."""
    if (block := act.picked("store", DEVICE, act.now.blocks(HOST))) is not None:
        act.take(act.down(DEVICE, block))


def evict_device(act: Act) -> None:
    """Pages leave the device, from a leaf up; mostly such as have a host copy."""
    there = act.now.blocks(DEVICE)
    copied = [block for block in there if act.now.on(HOST, block)] if act.draw.pick % 4 else []
    for blocks in (copied, there):
        if (block := act.picked("remove", DEVICE, blocks)) is not None:
            act.take(act.up(DEVICE, block))
            return


def evict_host(act: Act) -> None:
    """Pages leave host, from a leaf up."""
    if (block := act.picked("remove", HOST, act.now.blocks(HOST))) is not None:
        act.take(act.up(HOST, block))


def stray(act: Act) -> None:
    """A step that only the families allowed by the player's `strays` explain."""
    by, lenient = act.player.by, act.player.lenient
    fresh = act.player.page(act.player.page(None, act.draw.pick % FORKS), 0)
    steps = [
        act.step(kind, tier, block)
        for block in act.now.parents
        for tier in (HOST, DEVICE)
        for kind in ("store", "remove")
    ]
    steps.append(Step("store", DEVICE, fresh, act.player.page(None, act.draw.pick % FORKS), act.namespace))
    fitting = [
        step
        for step in steps
        if broken_rule(by, act.now, step) and broken_rule(lenient, act.now, step) is None
    ]
    if fitting:
        step = fitting[act.draw.pick % len(fitting)]
        act.player.books.book(act.source, step)
        act.player.announce(act.source, act.namespace, [step])


ACTS: dict[str, Callable[[Act], None]] = {
    "insert": insert,
    "back-up": back_up,
    "evict-device": evict_device,
    "load-back": load_back,
    "evict-host": evict_host,
    "stray": stray,
}
# What happens where an act cannot: what has to come before it.
INSTEAD = {
    "back-up": "insert",
    "evict-device": "back-up",
    "load-back": "evict-device",
    "evict-host": "evict-device",
    "stray": "evict-device",
}


def act(player: Player, source: Source, namespace: str, draw: Draw) -> None:
    """Let it happen; where it cannot, what has to come before it, and then it."""
    chain = [draw.happens]
    while not _happens(player, source, namespace, draw, chain[-1]):
        if chain[-1] not in INSTEAD:
            return
        chain.append(INSTEAD[chain[-1]])
    if len(chain) > 1:
        _happens(player, source, namespace, draw, draw.happens)


def _happens(player: Player, source: Source, namespace: str, draw: Draw, name: str) -> bool:
    before = len(player.entries)
    ACTS[name](Act(player, source, namespace, draw))
    return len(player.entries) > before

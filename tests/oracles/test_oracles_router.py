"""The judge of a consumer: silent about the reference; every planted fault of a consumer gives it away."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from tierfuzz.codec import encode_batch
from tierfuzz.consumers.link import Link
from tierfuzz.events import AllBlocksCleared, Batch, BlockRemoved, BlockStored, KvEvent
from tierfuzz.hashing import page_hashes
from tierfuzz.oracles.router import RouterJudge
from tierfuzz.program import FleetConfig
from tierfuzz.traits import Traits

SIZE = 4
FLEET = FleetConfig(page_size=SIZE, device_tokens=16 * SIZE, host_ratio=1.0, consumer="reference")
HOST = "CPU_PINNED"


def prompt(first: int, pages: int = 10) -> tuple[int, ...]:
    return tuple(first + page for page in range(pages) for _ in range(SIZE))


P, Q = prompt(100), prompt(200)


class Room:
    """Workers, a consumer, and its judge; events are of whole prompts, or of pages `at` to `to` of them."""

    def __init__(self, plant: str = "", fleet: FleetConfig = FLEET, traits: Traits | None = None) -> None:
        fleet = replace(fleet, plants=(plant,) if plant else ())
        self.traits = traits or Traits()
        self.link = Link.of(fleet)
        self.judge = RouterJudge(fleet, self.link, self.traits)
        self.seq = [0] * fleet.workers
        self.messages = 0
        for worker in range(fleet.workers):
            self.say(worker, AllBlocksCleared())

    def ask(self, tokens: tuple[int, ...], namespace: str = "") -> None:
        """A prompt is sent somewhere."""
        self.judge.sent(namespace, tokens)

    def say(self, worker: int, *events: KvEvent, skip: int = 0) -> None:
        """One message; `skip`: numbers that are never published before it."""
        self.seq[worker] += skip
        self.messages += 1
        batch = Batch(self.seq[worker], float(self.messages), 0, events)
        self.seq[worker] += 1
        self.link.heard(worker, batch, encode_batch(batch))

    def stored(
        self, tokens: tuple[int, ...], medium: str = "GPU", at: int = 0, to: int = 99, namespace: str = ""
    ) -> BlockStored:
        names = page_hashes(tokens, SIZE, self.traits.seed(namespace))
        before = names[at - 1] if at else None
        return BlockStored(names[at:to], before, tokens[at * SIZE : to * SIZE], SIZE, medium)

    def removed(self, tokens: tuple[int, ...], medium: str = "GPU") -> BlockRemoved:
        return BlockRemoved(page_hashes(tokens, SIZE)[::-1], medium)

    def restart(self, worker: int) -> None:
        """Another process at the same address."""
        self.seq[worker] = 0
        self.link.restarted(worker)
        self.say(worker, AllBlocksCleared())

    def violated(self) -> set[str]:
        """Ask at rest and at the end."""
        for worker in range(len(self.seq)):
            self.judge.rested(worker)
        for worker in range(len(self.seq)):
            self.judge.audit(worker)
        verdicts = self.judge.take_verdicts()
        self.unknown = {verdict.oracle for verdict in verdicts if not verdict.is_violation}
        return {verdict.oracle for verdict in verdicts if verdict.is_violation}


def turnover(room: Room) -> None:
    """Worker 0 has P on host only, worker 1 a shorter part of it on device."""
    room.ask(P)
    room.say(0, room.stored(P))
    room.say(0, room.stored(P, HOST))
    room.say(0, room.removed(P))
    room.say(1, room.stored(P, to=9))


def host_eviction(room: Room) -> None:
    turnover(room)
    room.say(0, room.removed(P, HOST))


def flush(room: Room) -> None:
    turnover(room)
    room.say(0, AllBlocksCleared())


def restart(room: Room) -> None:
    turnover(room)
    room.restart(0)
    room.say(0, room.stored(P, to=1))


def late_join(room: Room) -> None:
    """The consumer comes late; then pages below those it knows are stored, and all leave for host."""
    room.ask(P)
    room.say(0, room.stored(P, to=5))
    room.judge.restart_consumer(replay=False)
    room.say(0, room.stored(P, at=5))
    room.say(0, room.removed(P), room.stored(P, HOST, at=5), room.stored(P, HOST, to=5))


def long_history(room: Room) -> None:
    for first in range(1000, 1300, 10):
        room.ask(prompt(first, 1))
        room.say(0, room.stored(prompt(first, 1)))
        room.say(0, room.removed(prompt(first - 50, 1)) if first >= 1050 else room.stored(Q, HOST, to=1))


def farewell(room: Room) -> None:
    turnover(room)
    room.judge.deregister(0, 0)


Story = Callable[[Room], None]
STORIES: tuple[Story, ...] = (turnover, host_eviction, flush, restart, late_join, long_history, farewell)
FOUND: list[tuple[str, Story, set[str]]] = [
    ("sequence-reset-ignored", restart, {"router-stale", "router-miss", "wrong-worker"}),
    ("orphans-dropped", late_join, {"router-miss"}),
    ("gap-ignored", long_history, {"router-miss", "router-stale"}),
    ("tier-blind-removal", turnover, {"router-miss", "wrong-worker"}),
    ("lost-removal-strands-claim", host_eviction, {"router-stale", "wrong-worker"}),
    ("tier-spelled-twice", turnover, {"router-stale"}),
    ("name-goes-with-device-copy", host_eviction, {"router-stale", "wrong-worker"}),
    ("clear-ignored", flush, {"router-stale", "wrong-worker"}),
    ("dead-rank-keeps-entries", farewell, {"router-leak"}),
    ("tier-weight-counts-pages", turnover, {"router-miss", "wrong-worker"}),
]


@pytest.mark.parametrize("story", STORIES)
def test_the_reference_is_not_accused(story: Story) -> None:
    room = Room()
    story(room)
    assert room.violated() == set()
    assert room.unknown == set()
    assert room.judge.held["router-stale"] > 0


@pytest.mark.parametrize(("plant", "story", "oracles"), FOUND, ids=[plant for plant, *_ in FOUND])
def test_a_fault_of_a_consumer_is_noticed(plant: str, story: Story, oracles: set[str]) -> None:
    room = Room(plant)
    story(room)
    assert room.violated() == oracles


def test_the_control_fails_where_the_reference_does_not() -> None:
    room = Room(fleet=replace(FLEET, consumer="tier-blind"))
    turnover(room)
    assert room.violated() == {"router-miss", "wrong-worker"}


def test_more_claims_than_a_pool_has_pages_are_a_leak() -> None:
    room = Room("tier-spelled-twice")
    for first in (100, 200):
        room.ask(prompt(first))
        room.say(0, room.stored(prompt(first)))
        room.say(0, room.removed(prompt(first)))
    assert room.violated() == {"router-stale", "router-leak"}


def test_nothing_is_said_of_misses_where_messages_are_gone_for_good() -> None:
    room = Room()
    room.ask(P)
    room.say(0, room.stored(P))
    room.say(0, room.stored(Q), skip=1)
    assert room.violated() == set()
    assert room.unknown == {"router-miss"}, "the reference forgets what may be wrong, and that may be right"


def test_a_restarted_worker_is_not_asked_about_before_it_speaks() -> None:
    room = Room()
    turnover(room)
    room.link.restarted(0)
    assert room.violated() == set()
    assert room.judge.held["router-stale"] > 0


@pytest.mark.parametrize("traits", [Traits(seeded_namespaces=True), Traits()])
def test_a_page_is_held_where_any_namespace_holds_it(traits: Traits) -> None:
    room = Room(traits=traits)
    room.ask(P, "tenant")
    room.say(0, room.stored(P, namespace="tenant"))
    room.ask(P)
    room.say(0, room.stored(P))
    room.say(0, room.removed(P))
    assert room.violated() == set()
    assert room.judge.held["router-miss"] > 0
    assert room.link.consumer.overlap(P)[0, 0]


def test_a_page_that_namespaces_share_accuses_nobody() -> None:
    room = Room("tier-weight-counts-pages")
    for namespace in ("", "tenant"):
        room.ask(P, namespace)
    room.say(0, room.stored(P, HOST))
    assert room.violated() == set()
    assert "router-miss" in room.unknown


def test_a_late_consumer_with_a_replay_knows_everything() -> None:
    room = Room()
    turnover(room)
    room.judge.restart_consumer(replay=True)
    assert room.violated() == set()
    assert room.judge.reach["late-join"] == 1
    assert room.judge.reach["router-host-only"] > 0
    assert room.judge.reach["route-contested"] > 0
    assert len(room.link.consumer.overlap(P)) == 2


def test_a_late_consumer_without_one_knows_what_came_since() -> None:
    room = Room()
    turnover(room)
    room.judge.restart_consumer(replay=False)
    assert room.link.consumer.overlap(P) == {}
    assert room.violated() == set()

"""Ten thousand damaged payloads through the real socket: no crash, no hang, each one counted."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from publisher import Publisher, payload, publishing
from waiting import BOUND_S, wait_for

from tierfuzz.events import Batch
from tierfuzz.worker.subscriber import EventSubscriber

SEED = 20260917
DAMAGED = 10_000
RECORDINGS = Path(__file__).parent.parent / "recordings"
DEEP = b"\x91" * 50_000

Damage = Callable[[random.Random, bytes], bytes]
Both = tuple[Publisher, EventSubscriber]


def recorded() -> list[bytes]:
    """Payloads of both wire forms, as real engines sent them."""
    files = [json.loads((RECORDINGS / f"raw-payloads{v}.json").read_text()) for v in ("", "-0.5.23")]
    messages = [message for file in files for series in file.values() for message in series]
    return [base64.b64decode(message["payload_b64"]) for message in messages]


def truncated(rng: random.Random, body: bytes) -> bytes:
    """Cut anywhere."""
    return body[: rng.randrange(len(body))]


def trailing(rng: random.Random, body: bytes) -> bytes:
    """Something after the end."""
    return body + rng.randbytes(rng.randint(1, 9))


def noise(rng: random.Random, _: bytes) -> bytes:
    """Random bytes that do not begin as an array of three does."""
    first = rng.choice([b for b in range(256) if b not in (0x92, 0x93, 0xDC, 0xDD)])
    return bytes([first]) + rng.randbytes(rng.randint(0, 300))


def reserved(rng: random.Random, body: bytes) -> bytes:
    """The one byte that msgpack never uses, in place of the first event."""
    return body[:11] + b"\xc1" + rng.randbytes(8)


def arity(rng: random.Random, body: bytes) -> bytes:
    """A batch with items too few or too many."""
    items: list[Any] = msgspec.msgpack.decode(body)
    items = items[: rng.randrange(2)] if rng.random() < 0.5 else items + [0] * rng.randint(1, 20)
    return msgspec.msgpack.encode(items)


def event_shape(rng: random.Random, body: bytes) -> bytes:
    """One event of another type, arity or name; the batch around it is good."""
    ts, events, rank = msgspec.msgpack.decode(body)
    strange: list[Any] = [
        7, None, "BlockStored", [], {}, ["BlockStored"], ["BlockStored", *[None] * 30],
        ["BlockRemoved", [1], "GPU", 0, 0, 0, 0], ["Nothing", 1], {"type": "BlockStored"}, {"type": 5},
        {"block_hashes": [1]}, ["BlockRemoved", "not a list", "GPU"], ["BlockRemoved", [None], "GPU"],
    ]  # fmt: skip
    events.insert(rng.randint(0, len(events)), rng.choice(strange))
    return msgspec.msgpack.encode([ts, events, rank])


def huge_numbers(rng: random.Random, body: bytes) -> bytes:
    """Sizes beyond all sense where a page size, a hash or a rank is expected."""
    huge: Any = rng.choice([2**64 - 1, -(2**63), 1e308, float("inf"), float("nan")])
    ts, events, _ = msgspec.msgpack.decode(body)
    stored = ["BlockStored", [1], None, [1, 2], huge, None, "GPU"]
    return msgspec.msgpack.encode([ts, [*events, stored], 0])


def deep(rng: random.Random, _: bytes) -> bytes:
    """Arrays in arrays, deeper than any stack."""
    return DEEP[: rng.randint(5_000, len(DEEP))]


DAMAGES: list[Damage] = [truncated, trailing, noise, reserved, arity, event_shape, huge_numbers]


@pytest.fixture
def both() -> Iterator[Both]:
    """A publisher, and a subscriber that has joined."""
    with (
        publishing() as publisher,
        closing(EventSubscriber(publisher.endpoint, publisher.replay_endpoint, topic="kv-events")) as other,
    ):
        publisher.joined()
        yield publisher, other


def until_last(subscriber: EventSubscriber, last: float) -> list[Batch]:
    """Batches up to the good one with the time stamp `last`."""
    batches: list[Batch] = []

    def there() -> bool:
        batches.extend(subscriber.drain())
        return bool(batches) and batches[-1].ts == last

    wait_for(f"the batch of {last}", there)
    return batches


def test_recorded_payloads_are_good(both: Both) -> None:
    publisher, subscriber = both
    for seq, body in enumerate(recorded()):
        publisher.send(seq, body)
    count = len(recorded())
    publisher.send(count, payload(count))
    batches = until_last(subscriber, float(count))
    assert len(batches) == count + 1 == 49
    assert all(batch.events and not batch.faults for batch in batches)
    assert subscriber.take_findings() == []


def test_ten_thousand_damaged_payloads_are_each_counted(both: Both) -> None:
    publisher, subscriber = both
    rng, good = random.Random(SEED), recorded()
    for seq in range(DAMAGED):
        damage = deep if seq % 500 == 0 else DAMAGES[seq % len(DAMAGES)]
        publisher.send(seq, damage(rng, rng.choice(good)))
    publisher.send(DAMAGED, payload(DAMAGED))
    batches = until_last(subscriber, float(DAMAGED))
    assert [batch.seq for batch in batches] == list(range(DAMAGED + 1)), f"seed {SEED}"
    silent = [batch.seq for batch in batches[:-1] if not batch.faults]
    assert silent == [], f"seed {SEED}"
    assert subscriber.counts["malformed-payload"] == DAMAGED
    assert subscriber.counts["messages"] == DAMAGED + 1
    assert set(subscriber.counts) == {"malformed-payload", "messages"}
    assert {finding.slug for finding in subscriber.take_findings()} == {"malformed-payload"}


def test_flipped_bits_are_read_or_counted_and_never_hide_the_next_batch(both: Both) -> None:
    publisher, subscriber = both
    rng, good = random.Random(SEED), recorded()
    for seq in range(2_000):
        body = bytearray(rng.choice(good))
        for _ in range(rng.randint(1, 8)):
            body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
        publisher.send(seq, bytes(body))
    publisher.send(2_000, payload(2_000))
    batches = until_last(subscriber, 2_000.0)
    assert len(batches) == 2_001
    readable = {"missing-medium", "unknown-medium"}
    unreadable = sum(any(fault.slug not in readable for fault in batch.faults) for batch in batches)
    assert subscriber.counts["malformed-payload"] == unreadable > 0


def test_an_event_beside_a_bad_one_is_kept(both: Both) -> None:
    publisher, subscriber = both
    rng, good = random.Random(SEED), recorded()[1]
    publisher.send(0, event_shape(rng, good))
    publisher.send(1, payload(1))
    damaged, _ = until_last(subscriber, 1.0)
    assert len(damaged.events) == len(msgspec.msgpack.decode(good)[1]) > 0
    assert len(damaged.faults) == 1


def odd_frames(rng: random.Random) -> list[bytes]:
    """A message that is no batch: too few or too many frames, or a number that is not 8 bytes long."""
    topic = b"kv-events"
    if rng.random() < 0.5:
        return [topic, rng.randbytes(rng.choice([0, 1, 4, 7, 9, 16, 5000])), b"x"]
    count = rng.choice([0, 1, 3, 4, 50])
    return [topic + rng.randbytes(3), *(rng.randbytes(rng.randint(0, 9)) for _ in range(count))]


def test_odd_frames_between_good_batches_are_each_counted_and_cost_no_batch(both: Both) -> None:
    publisher, subscriber = both
    rng = random.Random(SEED)
    for _ in range(1_000):
        publisher.frames(*odd_frames(rng))
        publisher.publish(1)
    batches = until_last(subscriber, 999.0)
    assert [batch.ts for batch in batches] == [float(n) for n in range(1_000)], f"seed {SEED}"
    assert subscriber.counts["malformed-frames"] == 1_000
    assert set(subscriber.counts) == {"malformed-frames", "messages"}


def test_random_numbers_between_good_batches_are_each_counted_and_cost_no_batch(both: Both) -> None:
    publisher, subscriber = both
    rng = random.Random(SEED)
    publisher.publish(20)
    assert subscriber.sync(BOUND_S) == 19
    bogus = 0
    for _ in range(300):
        publisher.publish(1)
        number = rng.choice([rng.getrandbits(64), rng.randrange(15), 2**64 - 1, 2**63])
        publisher.send(number, b"number %d, %d" % (number, bogus))
        bogus += 1
        if rng.random() < 0.1:
            assert subscriber.sync(BOUND_S) is not None
    assert subscriber.sync(BOUND_S) == 319
    batches = until_last(subscriber, 319.0)
    wait_for("the last bogus one", lambda: subscriber.drain() or subscriber.counts["messages"] == 620)
    assert [batch.ts for batch in batches] == [float(n) for n in range(320)], f"seed {SEED}"
    assert subscriber.counts["sequence-gap"] == bogus
    assert subscriber.counts["subscriber-restart"] == 0

"""What cannot be read is counted and spoils only itself: each fault, and thousands of mutated payloads."""

from __future__ import annotations

import base64
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tierfuzz.codec import FAULT_SLUGS, Wire, decode_batch, encode_batch
from tierfuzz.events import AllBlocksCleared, Batch, BlockRemoved, BlockStored, KvEvent

RAW = Path(__file__).parent / "recordings" / "raw-payloads.json"
KEPT_SLUGS = {"missing-medium", "unknown-medium"}  # these stand beside an event that was read
STORED = BlockStored((11, -12), 10, (1, 2, 3, 4), 2, "GPU")
SIBLINGS = (STORED, BlockRemoved((11,), "CPU_PINNED"), AllBlocksCleared())
STORE = ["BlockStored", [1], None, [7], 1, None, "GPU"]


def packed(value: Any) -> bytes:
    """Any value as msgpack."""
    return msgspec.msgpack.encode(value)


def items(wire: Wire, *events: KvEvent) -> list[Any]:
    """The events as they stand in a payload."""
    return list(msgspec.msgpack.decode(encode_batch(Batch(0, 0.0, 0, events), wire))[1])


def slugs(batch: Batch) -> list[str]:
    """The faults of a batch."""
    return [fault.slug for fault in batch.faults]


def field(at: int, value: object) -> list[object]:
    """A store with one field changed."""
    return [*STORE[:at], value, *STORE[at + 1 :]]


MALFORMED: tuple[object, ...] = (
    *(None, [], 7, "BlockStored"),
    *(field(1, value) for value in ([], None, 5, [True], ["1"], [1.0], [b"short"], [None])),
    *(field(2, value) for value in ("1", [1], 0.5)),
    *(field(3, value) for value in (None, [True], [1.5], {"a": 1})),
    *(field(4, value) for value in (0, -1, "1", True, None)),
    *(field(5, value) for value in ([1], 1.5)),
    *(field(6, value) for value in (3, b"GPU")),
    *(["BlockRemoved", [], "GPU"], ["BlockRemoved", [1], 4]),
    {"type": "BlockRemoved", "medium": "GPU"},
    {"type": "BlockStored", "block_hashes": [1], "medium": "GPU"},
    msgspec.Raw(b"\x81\x81\x01\x02\x03"),  # a map whose key is a map
    msgspec.Raw(b"\xa2\xff\xff"),  # text that is no UTF-8
)
UNKNOWN: tuple[object, ...] = (["BlockMoved", [1]], [None], [[1]], {}, {"type": 3})
ARITY: tuple[object, ...] = (
    *(STORE[:5], [*STORE, 1, 2, 3, 4], ["BlockRemoved"]),
    *(["BlockRemoved", [1], "GPU", 1, 2, 3], ["AllBlocksCleared", 1]),
)
COUNT: tuple[object, ...] = (field(3, []), field(3, [7, 8]), field(4, 2), field(4, 2**63))
BAD_EVENTS: tuple[tuple[str, object], ...] = (
    *(("malformed-event", item) for item in MALFORMED),
    *(("unknown-event", item) for item in UNKNOWN),
    *(("wrong-arity", item) for item in ARITY),
    *(("token-count", item) for item in COUNT),
)


@pytest.mark.parametrize(("slug", "item"), BAD_EVENTS)
@pytest.mark.parametrize("wire", ["array", "map"])
def test_one_bad_event_is_counted_and_never_loses_its_siblings(slug: str, item: object, wire: Wire) -> None:
    before, *after = items(wire, *SIBLINGS)
    batch = decode_batch(9, packed([0.25, [before, item, *after], 1]))
    assert slugs(batch) == [slug]
    assert (batch.ts, batch.rank, batch.events) == (0.25, 1, SIBLINGS)
    assert len(batch.faults[0].detail) < 400


BAD_PAYLOADS: tuple[bytes, ...] = (
    *(b"", b"\xc1", b"not msgpack at all"),
    *map(packed, (None, {}, [], [1.0], [1.0, [], 0, 0], ["now", [], 0], [True, [], 0])),
    *map(packed, ([1.0, {}, 0], [1.0, None, 0], [1.0, [], "0"], [1.0, [], 0.5])),
    packed([1.0, [], 0]) + b"\x00",
    b"\x91" * 100_000,
    b"\x93\xcb" + b"\x00" * 8 + b"\xdd\xff\xff\xff\xff",  # four billion events are announced
)


@pytest.mark.parametrize("payload", BAD_PAYLOADS, ids=range(len(BAD_PAYLOADS)))
def test_a_payload_of_another_shape_is_one_fault(payload: bytes) -> None:
    batch = decode_batch(3, payload, 1.0, True)
    assert (batch.seq, batch.events, batch.received, batch.replayed) == (3, (), 1.0, True)
    assert slugs(batch) == ["malformed-payload"]


def test_every_slug_has_a_case() -> None:
    assert {slug for slug, _ in BAD_EVENTS} | KEPT_SLUGS | {"malformed-payload"} == set(FAULT_SLUGS)


def test_what_a_fault_shows_is_bounded() -> None:
    wide: Any = "x" * 100
    for _ in range(5):
        wide = [wide] * 6
    batch = decode_batch(0, packed([0.0, [field(1, wide), *items("array", STORED)], 0]))
    assert (slugs(batch), batch.events) == (["malformed-event"], (STORED,))
    assert len(batch.faults[0].detail) < 400


def test_an_event_nested_without_end_does_not_raise() -> None:
    deep = msgspec.Raw(b"\x91" * 100_000 + b"\xc0")
    batch = decode_batch(0, packed([0.0, [*items("array", STORED), deep], 0]))
    assert slugs(batch) in (["malformed-event"], ["malformed-payload"])


Mutated = tuple[bytes, set[str]]  # a payload, and the fault of which it must have exactly one; empty: any
Mutation = Callable[[random.Random, bytes], Mutated]
GARBAGE: tuple[Any, ...] = (None, True, -1, 2**63, 2**64 - 1, -(2**63), 1.5, "x", b"\x00" * 9, [], {}, [[[]]])


def random_bytes(rng: random.Random, payload: bytes) -> Mutated:
    """Anything at all."""
    return rng.randbytes(rng.randrange(len(payload))), set()


def flipped(rng: random.Random, payload: bytes) -> Mutated:
    """One to four bits are wrong."""
    body = bytearray(payload)
    for _ in range(rng.randint(1, 4)):
        body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
    return bytes(body), set()


def truncated(rng: random.Random, payload: bytes) -> Mutated:
    """The end is missing."""
    return payload[: rng.randrange(len(payload))], {"malformed-payload"}


def wrong_arity(rng: random.Random, payload: bytes) -> Mutated:
    """One event has too few or too many items."""
    ts, events, rank = msgspec.msgpack.decode(payload)
    event = rng.choice(events)
    least = {"BlockStored": 6, "BlockRemoved": 2}.get(event[0], 1)
    if rng.random() < 0.5:
        del event[rng.randrange(least) :]
    else:
        event += [None] * (11 - len(event))
    return packed([ts, events, rank]), {"wrong-arity", "malformed-event"}


def garbage_for_an_event(rng: random.Random, payload: bytes) -> Mutated:
    """One event is something else."""
    ts, events, rank = msgspec.msgpack.decode(payload)
    events[rng.randrange(len(events))] = nested(rng, 4)
    return packed([ts, events, rank]), {"malformed-event", "unknown-event"}


def garbage_for_a_field(rng: random.Random, payload: bytes) -> Mutated:
    """One field of one event is something else; whether that is a fault depends on the field."""
    ts, events, rank = msgspec.msgpack.decode(payload)
    event = rng.choice(events)
    event[rng.randrange(len(event))] = nested(rng, 3)
    return packed([ts, events, rank]), set()


def nested(rng: random.Random, depth: int) -> Any:
    """Lists in lists of what does not belong there, huge numbers among them."""
    if not depth or rng.random() < 0.4:
        return rng.choice(GARBAGE)
    return [nested(rng, depth - 1) for _ in range(rng.randint(0, 3))]


@pytest.mark.parametrize(
    "mutate",
    [random_bytes, flipped, truncated, wrong_arity, garbage_for_an_event, garbage_for_a_field],
)
def test_mutated_payloads_never_raise_and_what_is_malformed_is_counted(mutate: Mutation) -> None:
    recorded = json.loads(RAW.read_text())
    sources = [base64.b64decode(message["payload_b64"]) for name in recorded for message in recorded[name]]
    rng, counted = random.Random(mutate.__name__), Counter[str]()
    for number in range(1700):  # six times: more than 10,000
        payload, expected = mutate(rng, rng.choice(sources))
        batch = decode_batch(number, payload)
        counted.update(slugs(batch))
        if expected:
            assert len(batch.faults) == 1, f"mutation {number}: {payload!r}"
            assert batch.faults[0].slug in expected, f"mutation {number}: {payload!r}"
        check_kept(batch, payload)
    assert counted.total() > 200
    assert set(counted) <= set(FAULT_SLUGS)


def check_kept(batch: Batch, payload: bytes) -> None:
    """Each item of a payload became an event or a fault, and each event can be sent again."""
    lost = [slug for slug in slugs(batch) if slug not in KEPT_SLUGS]
    if "malformed-payload" in lost:
        assert (batch.events, len(batch.faults)) == ((), 1)
        return
    _, sent, *_ = msgspec.msgpack.decode(payload, type=list[msgspec.Raw])
    assert len(batch.events) + len(lost) == len(msgspec.msgpack.decode(sent, type=list[msgspec.Raw]))
    assert decode_batch(batch.seq, encode_batch(batch)).events == batch.events

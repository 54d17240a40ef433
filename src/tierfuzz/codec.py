"""Event payloads: both wire forms to Batch and back (engine-semantics 3.3, engine-0.5.23 section 2).

Decoding never raises: what cannot be read becomes an EventFault beside the events that can.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from tierfuzz.events import (
    AllBlocksCleared,
    Batch,
    BlockRemoved,
    BlockStored,
    EventFault,
    KvEvent,
    Tier,
    tier_of,
)

Wire = Literal["array", "map"]

# Slugs of the faults of a batch. The last two stand beside an event that is kept, the others for a part
# that could not be read.
FAULT_SLUGS = (
    "malformed-payload",
    "malformed-event",
    "unknown-event",
    "wrong-arity",
    "token-count",
    "missing-medium",
    "unknown-medium",
)

_STORED_KEYS = ("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium")
_EXTRA_KEYS = ("cache_salt", "session_id", "lora_name")


class _Frame(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A payload whose events are not read yet, so that one of them cannot spoil the others."""

    ts: float
    events: msgspec.Raw
    rank: int | None = 0


_frames = msgspec.msgpack.Decoder(_Frame)
_items = msgspec.msgpack.Decoder(list[msgspec.Raw])
_values = msgspec.msgpack.Decoder()
_encoder = msgspec.msgpack.Encoder()
_MOST_SHOWN = 120  # characters of foreign data in the detail of a fault


class _Unreadable(Exception):
    """Internal: a part that cannot be read, with the slug of its fault."""

    def __init__(self, slug: str, detail: str) -> None:
        super().__init__(detail)
        self.fault = EventFault(slug, detail)


def decode_batch(seq: int, payload: bytes, received: float = 0.0, replayed: bool = False) -> Batch:
    """Read one payload; faults are kept in the batch, in order, and never hide other events."""
    faults: list[EventFault] = []
    events: list[KvEvent] = []
    try:
        ts, rank, items = _frame(payload)
    except _Unreadable as unreadable:
        return Batch(seq, 0.0, 0, (), (unreadable.fault,), received, replayed)
    for item in items:
        try:
            event = _event(item)
        except _Unreadable as unreadable:
            faults.append(unreadable.fault)
        else:
            events.append(event)
            faults += medium_faults(event)
    return Batch(seq, ts, rank, tuple(events), tuple(faults), received, replayed)


def _frame(payload: bytes) -> tuple[float, int, list[msgspec.Raw]]:
    try:
        frame = _frames.decode(payload)
        return frame.ts, frame.rank or 0, _items.decode(frame.events)
    except Exception as error:  # whatever the decoder says of foreign bytes is a finding
        detail = f"{len(payload)} bytes, expected msgpack of [ts, events, rank]: {error}"
        raise _Unreadable("malformed-payload", detail) from error


def _event(raw: msgspec.Raw) -> KvEvent:
    try:
        item = _values.decode(raw)
    except Exception as error:  # as above
        raise _Unreadable("malformed-event", f"an event that is no msgpack value: {error}") from error
    if isinstance(item, dict):
        return _read(item.get("type"), item.get, item)
    if isinstance(item, list) and item:
        return _from_array(item)
    raise _Unreadable("malformed-event", f"expected an array or a map, got {_short(item)}")


def _from_array(item: list[Any]) -> KvEvent:
    """More items than the engines of the reference send are fields of a newer version, up to a bound."""
    fields: dict[str, Any] = {}
    if item[0] == "BlockStored":
        _arity(item, 6, 10)
        fields = dict(zip(_STORED_KEYS, item[1:], strict=False))
    elif item[0] == "BlockRemoved":
        _arity(item, 2, 5)
        fields = {"block_hashes": item[1], "medium": item[2] if len(item) > 2 else None}
    elif item[0] == "AllBlocksCleared":
        _arity(item, 1, 1)
    return _read(item[0], fields.get, item)


def _arity(item: list[Any], least: int, most: int) -> None:
    if not least <= len(item) <= most:
        raise _Unreadable("wrong-arity", f"{item[0]} with {len(item)} items, expected {least} to {most}")


def _read(kind: Any, get: Callable[[str], Any], item: Any) -> KvEvent:
    if kind == "BlockStored":
        return _stored(get, item)
    if kind == "BlockRemoved":
        return BlockRemoved(_hashes(get("block_hashes"), item), _text("medium", get, item))
    if kind == "AllBlocksCleared":
        return AllBlocksCleared()
    raise _Unreadable("unknown-event", f"event of type {_short(kind)} with {len(item)} items")


def _stored(get: Callable[[str], Any], item: Any) -> BlockStored:
    hashes = _hashes(get("block_hashes"), item)
    parent, size, lora = get("parent_block_hash"), get("block_size"), get("lora_id")
    if not _is_int(size) or size <= 0:
        raise _Unreadable("malformed-event", f"block_size {_short(size)} in {_short(item)}")
    if not (lora is None or _is_int(lora) or isinstance(lora, str)):
        raise _Unreadable("malformed-event", f"lora_id {_short(lora)} in {_short(item)}")
    tokens = _tokens(get("token_ids"), len(hashes), size)
    before = None if parent is None else _hash(parent, item)
    extra = [_text(key, get, item) for key in _EXTRA_KEYS]
    return BlockStored(hashes, before, tokens, size, _text("medium", get, item), lora, *extra)


def _tokens(value: Any, blocks: int, size: int) -> tuple[int, ...]:
    if not isinstance(value, list) or not set(map(type, value)) <= {int}:
        raise _Unreadable("malformed-event", f"token_ids {_short(value)}: expected a list of ints")
    if len(value) != blocks * size:
        raise _Unreadable("token-count", f"{len(value)} token ids for {blocks} blocks of {size}")
    return tuple(value)


def _hashes(value: Any, item: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise _Unreadable("malformed-event", f"block_hashes {_short(value)} in {_short(item)}")
    return tuple([_hash(one, item) for one in value])


def _hash(value: Any, item: Any) -> int:
    """Signed 64 bits; some engines send them unsigned, or the digest itself."""
    if isinstance(value, bytes) and len(value) >= 8:
        return int.from_bytes(value[:8], "big", signed=True)
    if not _is_int(value):
        raise _Unreadable("malformed-event", f"block hash {_short(value)} in {_short(item)}")
    return int(value) - (1 << 64) if value >= 1 << 63 else int(value)


def _text(key: str, get: Callable[[str], Any], item: Any) -> str | None:
    value = get(key)
    if value is None or isinstance(value, str):
        return value
    raise _Unreadable("malformed-event", f"{key} {_short(value)} in {_short(item)}")


def medium_faults(event: KvEvent) -> list[EventFault]:
    """What is wrong with the medium of an event: missing-medium or unknown-medium, or nothing."""
    if isinstance(event, AllBlocksCleared):
        return []
    kind = "store" if isinstance(event, BlockStored) else "removal"
    if event.medium is None:
        return [EventFault("missing-medium", f"{kind} of {len(event.hashes)} blocks names no medium")]
    if tier_of(event.medium) is Tier.UNKNOWN:
        medium = _short(event.medium)
        return [EventFault("unknown-medium", f"{kind} of {len(event.hashes)} blocks in {medium}")]
    return []


def _short(value: Any) -> str:
    """Bounded in depth and length: foreign data may be nested, and each level multiplies."""
    shown = reprlib.Repr()
    shown.maxlevel = 3
    text = shown.repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def encode_batch(batch: Batch, wire: Wire = "array") -> bytes:
    """The payload that an engine of this wire form would send: arrays (0.5.17) or maps (0.5.23)."""
    form = _as_array if wire == "array" else _as_map
    return _encoder.encode([batch.ts, [form(event) for event in batch.events], batch.rank])


def _as_array(event: KvEvent) -> list[Any]:
    if isinstance(event, BlockStored):
        body = [event.hashes, event.parent, event.tokens, event.block_size, event.lora_id, event.medium]
        return ["BlockStored", *body]
    if isinstance(event, BlockRemoved):
        return ["BlockRemoved", event.hashes, event.medium]
    return ["AllBlocksCleared"]


def _as_map(event: KvEvent) -> dict[str, Any]:
    fields = _as_array(event)
    if isinstance(event, BlockStored):
        extra = {key: getattr(event, key) for key in _EXTRA_KEYS if getattr(event, key) is not None}
        return {"type": fields[0], **dict(zip(_STORED_KEYS, fields[1:], strict=True)), **extra}
    if isinstance(event, BlockRemoved):
        return {"type": fields[0], "block_hashes": event.hashes, "medium": event.medium}
    return {"type": fields[0]}

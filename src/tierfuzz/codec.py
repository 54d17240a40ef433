"""Event payloads: both wire forms to Batch and back (engine-semantics 3.3, engine-0.5.23 section 2).

Decoding never raises: what cannot be read becomes an EventFault beside the events that can.
"""

from __future__ import annotations

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
_STORED_KEYS = ("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium")
_decoder = msgspec.msgpack.Decoder()
_encoder = msgspec.msgpack.Encoder()


class _Unreadable(Exception):
    """Internal: an event that cannot be read, with the slug of its fault."""

    def __init__(self, slug: str, detail: str) -> None:
        super().__init__(detail)
        self.slug = slug


def decode_batch(seq: int, payload: bytes, received: float = 0.0, replayed: bool = False) -> Batch:
    """Read one payload; faults are kept in the batch, in order, and never hide other events."""
    faults: list[EventFault] = []
    events: list[KvEvent] = []
    ts, rank = 0.0, 0
    try:
        ts, items, rank = _frame(payload)
    except _Unreadable as unreadable:
        faults.append(EventFault(unreadable.slug, str(unreadable)))
        items = []
    for item in items:
        try:
            event = _event(item)
        except _Unreadable as unreadable:
            faults.append(EventFault(unreadable.slug, str(unreadable)))
            continue
        events.append(event)
        faults.extend(_medium_faults(event))
    return Batch(seq, ts, rank, tuple(events), tuple(faults), received, replayed)


def _frame(payload: bytes) -> tuple[float, list[Any], int]:
    try:
        body = _decoder.decode(payload)
    except (msgspec.DecodeError, ValueError, RecursionError, OverflowError) as error:
        raise _Unreadable("malformed-payload", f"{len(payload)} bytes are not msgpack: {error}") from error
    if not isinstance(body, list) or not 2 <= len(body) <= 3:
        raise _Unreadable("malformed-payload", f"expected [ts, events, rank], got {_short(body)}")
    ts, items, rank = body[0], body[1], body[2] if len(body) == 3 else 0
    if not _is_number(ts) or not isinstance(items, list) or not (rank is None or _is_int(rank)):
        raise _Unreadable("malformed-payload", f"expected [number, list, int], got {_short(body)}")
    return float(ts), items, rank or 0


def _event(item: Any) -> KvEvent:
    if isinstance(item, dict):
        return _read(item.get("type"), item.get, len(item), item)
    if isinstance(item, list) and item:
        return _from_array(item)
    raise _Unreadable("malformed-event", f"expected an array or a map, got {_short(item)}")


def _from_array(item: list[Any]) -> KvEvent:
    fields: dict[str, Any]
    if item[0] == "BlockStored":
        _arity(item, 6, 10)
        fields = dict(zip(_STORED_KEYS, item[1:], strict=False))
    elif item[0] == "BlockRemoved":
        _arity(item, 2, 5)
        fields = {"block_hashes": item[1], "medium": item[2] if len(item) > 2 else None}
    else:
        fields = {}
    return _read(item[0], fields.get, len(item), item)


def _arity(item: list[Any], least: int, most: int) -> None:
    if not least <= len(item) <= most:
        raise _Unreadable("wrong-arity", f"{item[0]} with {len(item)} items, expected {least} to {most}")


def _read(kind: Any, get: Callable[[str], Any], size: int, item: Any) -> KvEvent:
    if kind == "BlockStored":
        return _stored(get, item)
    if kind == "BlockRemoved":
        return BlockRemoved(_hashes(get("block_hashes"), item), _medium(get("medium"), item))
    if kind == "AllBlocksCleared":
        return AllBlocksCleared()
    raise _Unreadable("unknown-event", f"event of type {_short(kind)} with {size} items")


def _stored(get: Callable[[str], Any], item: Any) -> BlockStored:
    hashes = _hashes(get("block_hashes"), item)
    parent, size, tokens = get("parent_block_hash"), get("block_size"), get("token_ids")
    if not _is_int(size) or size <= 0:
        raise _Unreadable("malformed-event", f"block_size {_short(size)} in {_short(item)}")
    if not isinstance(tokens, list) or not all(_is_int(token) for token in tokens):
        raise _Unreadable("malformed-event", f"token_ids {_short(tokens)}: expected a list of ints")
    if len(tokens) != len(hashes) * size:
        detail = f"{len(tokens)} token ids for {len(hashes)} blocks of {size}"
        raise _Unreadable("token-count", detail)
    lora = get("lora_id")
    return BlockStored(
        hashes,
        None if parent is None else _hash(parent, item),
        tuple(tokens),
        size,
        _medium(get("medium"), item),
        lora if lora is None or isinstance(lora, int | str) else None,
    )


def _hashes(value: Any, item: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise _Unreadable("malformed-event", f"block_hashes {_short(value)} in {_short(item)}")
    return tuple(_hash(one, item) for one in value)


def _hash(value: Any, item: Any) -> int:
    if isinstance(value, bytes) and len(value) >= 8:
        return int.from_bytes(value[:8], "big", signed=True)
    if not _is_int(value):
        raise _Unreadable("malformed-event", f"block hash {_short(value)} in {_short(item)}")
    return int(value) - (1 << 64) if value >= 1 << 63 else int(value)


def _medium(value: Any, item: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise _Unreadable("malformed-event", f"medium {_short(value)} in {_short(item)}")
    return value


def _medium_faults(event: KvEvent) -> list[EventFault]:
    if isinstance(event, AllBlocksCleared):
        return []
    kind = "store" if isinstance(event, BlockStored) else "removal"
    if event.medium is None:
        return [EventFault("missing-medium", f"{kind} of {len(event.hashes)} blocks names no medium")]
    if tier_of(event.medium) is Tier.UNKNOWN:
        return [EventFault("unknown-medium", f"{kind} of {len(event.hashes)} blocks in {event.medium!r}")]
    return []


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_int(value) or isinstance(value, float)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def encode_batch(batch: Batch, wire: Wire = "array") -> bytes:
    """The payload that an engine of this wire form would send."""
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
        return {"type": fields[0], **dict(zip(_STORED_KEYS, fields[1:], strict=True))}
    if isinstance(event, BlockRemoved):
        return {"type": fields[0], "block_hashes": event.hashes, "medium": event.medium}
    return {"type": fields[0]}

"""Recordings of a real engine: typed reading and writing, and which event belongs to which operation."""

from __future__ import annotations

import bisect
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from tierfuzz.errors import FormatError, UsageError
from tierfuzz.events import AllBlocksCleared, BlockRemoved, BlockStored, KvEvent
from tierfuzz.observation import TierSplit
from tierfuzz.program import WritePolicy
from tierfuzz.prompts import Piece

RECORDING_FORMAT = 1
OPERATION_START_S = 0.004  # the end of an operation can be published just after the next call


class Header(msgspec.Struct, tag="header"):
    """First line of a recording; sizes in tokens. `extra` keeps the fields that have no name here."""

    format: int
    engine: str
    version: str
    write_policy: WritePolicy
    page_size: int
    device_tokens: int
    host_tokens: int
    chunked_prefill_size: int
    overlap: bool = True
    kind: str = "random"
    seed: int | None = None
    tree_core: str | None = None
    storage_backend: str | None = None
    storage_extra_config: str | None = None
    extra: dict[str, Any] = {}


class OpRecord(msgspec.Struct, tag="op"):
    """One request or flush; `t` seconds since the client started, `ms` until the response."""

    op: Literal["generate", "flush"]
    t: float
    status: int = 200
    ms: float = 0.0
    note: str = ""
    prompt: tuple[Piece, ...] = ()
    max_new_tokens: int = 0
    extra_key: str | None = None
    logprob_start_len: int | None = None
    output_ids: tuple[int, ...] | None = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cached_tokens_details: TierSplit | None = None
    burst: bool = False
    abort_t: float | None = None
    finish: str | None = None
    num_retractions: int | None = None
    error: str | None = None


class BatchRecord(msgspec.Struct, tag="batch"):
    """One message of the event socket; `events` as in the file, arrays (0.5.17) or maps (0.5.23)."""

    t: float
    seq: int
    ts: float
    rank: int
    events: list[Any]

    def typed(self) -> list[KvEvent]:
        """The events as values; stores have no tokens, only their number is recorded."""
        return [_typed(event) for event in self.events]


@dataclass(frozen=True)
class Recording:
    """A whole file: operations in order of their start, batches in order of seq."""

    path: Path
    header: Header
    ops: list[OpRecord]
    batches: list[BatchRecord]

    @cached_property
    def typed(self) -> list[list[KvEvent]]:
        """The events of every batch as values, converted once."""
        return [batch.typed() for batch in self.batches]


_Hash = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _Stored(msgspec.Struct, array_like=True, tag="BlockStored"):
    block_hashes: tuple[_Hash, ...]
    parent_block_hash: _Hash | None
    token_ids: int
    block_size: int
    lora_id: int | str | None
    medium: str | None


class _Removed(msgspec.Struct, array_like=True, tag="BlockRemoved"):
    block_hashes: tuple[_Hash, ...]
    medium: str | None


class _Cleared(msgspec.Struct, array_like=True, tag="AllBlocksCleared"):
    pass


_ArrayEvent = _Stored | _Removed | _Cleared


def _typed(event: Any) -> KvEvent:
    fields = _as_array(event) if isinstance(event, dict) else event
    read: _ArrayEvent = msgspec.convert(fields, _ArrayEvent)
    if isinstance(read, _Stored):
        return BlockStored(
            read.block_hashes, read.parent_block_hash, (), read.block_size, read.medium, read.lora_id
        )
    if isinstance(read, _Removed):
        return BlockRemoved(read.block_hashes, read.medium)
    return AllBlocksCleared()


_ORDER = {"BlockStored": _Stored.__struct_fields__, "BlockRemoved": _Removed.__struct_fields__}


def _as_array(event: dict[str, Any]) -> list[Any]:
    """The map form as an array."""
    kind = event.get("type")
    return [kind, *(event.get(key) for key in _ORDER.get(str(kind), ()))]


_FLUSH = ("type", "op", "t", "status", "note")
_REPLY = ("output_ids", "prompt_tokens", "completion_tokens", "cached_tokens", "cached_tokens_details")
_records: msgspec.json.Decoder[OpRecord | BatchRecord] = msgspec.json.Decoder(OpRecord | BatchRecord)


def read_recording(path: Path) -> Recording:
    """Read a .jsonl or .jsonl.xz recording; FormatError names the line that is wrong."""
    lines = _lines(path)
    if (first := next(lines, None)) is None:
        raise FormatError(f"{path}: empty file; expected a recording that starts with its header")
    header = _header(path, *first)
    records = [_record(path, number, line) for number, line in lines]
    ops = [record for record in records if isinstance(record, OpRecord)]
    batches = [record for record in records if isinstance(record, BatchRecord)]
    return Recording(path, header, sorted(ops, key=lambda op: op.t), sorted(batches, key=lambda b: b.seq))


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
            yield from ((number, line) for number, line in enumerate(file, 1) if line.strip())
    except (OSError, lzma.LZMAError, EOFError) as error:
        raise FormatError(f"{path}: cannot be read ({error}); expected .jsonl or .jsonl.xz") from error


def _header(path: Path, number: int, line: bytes) -> Header:
    try:
        fields = msgspec.json.decode(line, type=dict[str, Any])
        if fields.get("type") != "header":
            raise FormatError(f"{path}, line 1: expected the header of a recording")
        if (version := fields.get("format")) != RECORDING_FORMAT:
            raise FormatError(f"{path}: recording format {version!r}; expected format {RECORDING_FORMAT}")
        named = {"type", *Header.__struct_fields__} - {"extra"}
        extra = {key: value for key, value in fields.items() if key not in named}
        return msgspec.convert({**fields, "extra": extra}, Header)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _refused(path, number, error) from error


def _record(path: Path, number: int, line: bytes) -> OpRecord | BatchRecord:
    try:
        record = _records.decode(line)
        if isinstance(record, BatchRecord):
            record.typed()
        return record
    except (msgspec.DecodeError, RecursionError, UsageError) as error:
        raise _refused(path, number, error) from error


def _refused(path: Path, number: int, error: Exception) -> FormatError:
    return FormatError(f"{path}, line {number}: not a record of a recording ({error})")


def write_recording(path: Path, recording: Recording) -> None:
    """Write in the order of arrival, compressed if the name ends in .xz; reading gives the same back."""
    arrivals: list[tuple[float, dict[str, Any]]] = [
        *((op.t + op.ms / 1000, _op_fields(op)) for op in recording.ops),
        *((batch.t, msgspec.to_builtins(batch)) for batch in recording.batches),
    ]
    arrivals.sort(key=lambda arrival: arrival[0])
    lines = [_header_fields(recording.header), *(fields for _, fields in arrivals)]
    with lzma.open(path, "wb") if path.suffix == ".xz" else path.open("wb") as file:
        file.writelines(msgspec.json.encode(fields) + b"\n" for fields in lines)


def _header_fields(header: Header) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(header)
    extra: dict[str, Any] = fields.pop("extra")
    return {key: value for key, value in fields.items() if value is not None} | extra


def _op_fields(op: OpRecord) -> dict[str, Any]:
    """What was sent or seen; a reply's fields stand there even when they are null."""
    fields: dict[str, Any] = msgspec.to_builtins(op)
    if op.op == "flush":
        return {key: value for key, value in fields.items() if key in _FLUSH}
    if op.cached_tokens_details is not None:
        fields["cached_tokens_details"] = {"device": 0, "host": 0} | fields["cached_tokens_details"]
    unset = {key for key, value in fields.items() if value is None or value is False}
    return {key: value for key, value in fields.items() if key in _REPLY or key not in unset}


def windows(recording: Recording) -> list[list[tuple[int, KvEvent]]]:
    """Per operation, its events with the index of their batch, by publish time.

    `ts` plus the smallest delay of the file stands for the client's clock; an operation begins 4 ms after its
    call; what stands before a clear in a flush's window belongs to the operation before it.
    """
    ops, batches = recording.ops, recording.batches
    found: list[list[tuple[int, KvEvent]]] = [[] for _ in ops]
    if not batches or not ops:
        return found
    shift = min(batch.t - batch.ts for batch in batches)
    starts = [op.t + (OPERATION_START_S if op.op == "generate" else 0.0) for op in ops]
    for index, batch in enumerate(batches):
        at = max(0, bisect.bisect_right(starts, batch.ts + shift) - 1)
        found[at].extend((index, event) for event in recording.typed[index])
    for at in range(1, len(ops)):
        if ops[at].op == "flush":
            _give_back(found, at)
    return found


def _give_back(found: list[list[tuple[int, KvEvent]]], at: int) -> None:
    cleared = [i for i, (_, event) in enumerate(found[at]) if isinstance(event, AllBlocksCleared)]
    if cleared and cleared[0] > 0:
        found[at - 1] += found[at][: cleared[0]]
        found[at] = found[at][cleared[0] :]

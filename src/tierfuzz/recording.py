"""Recordings of a real engine: typed reading, and which event belongs to which operation."""

from __future__ import annotations

import bisect
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from tierfuzz.errors import FormatError
from tierfuzz.events import AllBlocksCleared, BlockRemoved, BlockStored, KvEvent
from tierfuzz.observation import TierSplit
from tierfuzz.program import WritePolicy
from tierfuzz.prompts import Piece

RECORDING_FORMAT = 1
OPERATION_START_S = 0.004  # the end of an operation can be published just after the next call


class Header(msgspec.Struct, tag="header"):
    """First line of a recording; sizes in tokens."""

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
    """One message of the event socket; `events` as in the file."""

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


_line: msgspec.json.Decoder[Header | OpRecord | BatchRecord] = msgspec.json.Decoder(
    Header | OpRecord | BatchRecord
)


def read_recording(path: Path) -> Recording:
    """Read a .jsonl or .jsonl.xz recording; FormatError names the line that is wrong."""
    header: Header | None = None
    ops: list[OpRecord] = []
    batches: list[BatchRecord] = []
    for number, line in enumerate(_lines(path), 1):
        record = _record(path, number, line)
        if header is None:
            header = _checked_header(path, record)
        elif isinstance(record, OpRecord):
            ops.append(record)
        elif isinstance(record, BatchRecord):
            batches.append(record)
    if header is None:
        raise FormatError(f"{path}: empty file; expected a recording that starts with its header")
    return Recording(path, header, sorted(ops, key=lambda op: op.t), sorted(batches, key=lambda b: b.seq))


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
            yield from (line for line in file if line.strip())
    except (OSError, lzma.LZMAError, EOFError) as error:
        raise FormatError(f"{path}: cannot be read ({error}); expected .jsonl or .jsonl.xz") from error


def _record(path: Path, number: int, line: bytes) -> Header | OpRecord | BatchRecord:
    try:
        return _line.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}, line {number}: not a record of a recording ({error})") from error


def _checked_header(path: Path, record: Header | OpRecord | BatchRecord) -> Header:
    if not isinstance(record, Header):
        raise FormatError(f"{path}, line 1: expected the header of a recording")
    if record.format != RECORDING_FORMAT:
        raise FormatError(f"{path}: recording format {record.format}; expected format {RECORDING_FORMAT}")
    return record


def _typed(event: Any) -> KvEvent:
    if isinstance(event, dict):
        kind = event.get("type")
        hashes, medium = tuple(event.get("block_hashes", ())), event.get("medium")
        parent, size = event.get("parent_block_hash"), event.get("block_size", 0)
    else:
        kind = event[0]
        hashes = tuple(event[1]) if len(event) > 1 else ()
        medium = event[6] if kind == "BlockStored" else event[2] if len(event) > 2 else None
        parent, size = (event[2], event[4]) if kind == "BlockStored" else (None, 0)
    if kind == "BlockStored":
        return BlockStored(hashes, parent, (), size, medium)
    if kind == "BlockRemoved":
        return BlockRemoved(hashes, medium)
    return AllBlocksCleared()


def windows(recording: Recording) -> list[list[tuple[int, KvEvent]]]:
    """Per operation, its events with the index of their batch, by publish time.

    `ts` plus the smallest delay of the file stands for the client's clock; an operation begins 4 ms after its
    call; what stands before a clear in a flush's window belongs to the operation before it.
    """
    ops, batches = recording.ops, recording.batches
    found: list[list[tuple[int, KvEvent]]] = [[] for _ in ops]
    if not batches:
        return found
    shift = min(batch.t - batch.ts for batch in batches)
    starts = [op.t + (OPERATION_START_S if op.op == "generate" else 0.0) for op in ops]
    for index, batch in enumerate(batches):
        at = max(0, bisect.bisect_right(starts, batch.ts + shift) - 1)
        found[at].extend((index, event) for event in batch.typed())
    for at in range(1, len(ops)):
        if ops[at].op == "flush":
            _give_back(found, at)
    return found


def _give_back(found: list[list[tuple[int, KvEvent]]], at: int) -> None:
    cleared = [i for i, (_, event) in enumerate(found[at]) if isinstance(event, AllBlocksCleared)]
    if cleared and cleared[0] > 0:
        found[at - 1] += found[at][: cleared[0]]
        found[at] = found[at][cleared[0] :]

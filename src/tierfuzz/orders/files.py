"""Streams on disk: versioned JSONL, a header and one line a message; recordings are read as streams too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tierfuzz.codec import decode_batch, encode_batch
from tierfuzz.errors import FormatError, UsageError
from tierfuzz.events import Batch, KvEvent
from tierfuzz.model.rules import rules_for
from tierfuzz.orders.recorded import stream_of
from tierfuzz.orders.stream import Entry, Restarted, Sent, Stream
from tierfuzz.program import WritePolicy
from tierfuzz.recording import read_recording

STREAM_FORMAT = 1


class _Header(msgspec.Struct, tag="stream"):
    """First line. `page_size` in tokens; `shared`: blocks of several namespaces, see Stream."""

    format: int
    policy: WritePolicy
    page_size: int
    profile: str = "default"
    storage: bool = False
    shared: tuple[int, ...] = ()
    note: str = ""


class _Batch(msgspec.Struct, tag="batch", omit_defaults=True):
    """One message: events in the map form of the wire (engine-0.5.23 section 2)."""

    worker: int
    rank: int
    events: list[dict[str, Any]]
    namespaces: tuple[str, ...] = ()


_entries: msgspec.json.Decoder[_Batch | Restarted] = msgspec.json.Decoder(_Batch | Restarted)


def is_stream(path: Path) -> bool:
    """Whether a file is a stream or a recording, by its name and its first line."""
    if path.suffix == ".xz":
        return True
    with path.open("rb") as file:
        start = file.readline()
    return b'"type":"stream"' in start.replace(b" ", b"") or b'"type":"header"' in start.replace(b" ", b"")


def load_stream(path: Path) -> Stream:
    """Read a stream file, or the messages of a recording; FormatError names the line that is wrong."""
    if path.suffix == ".xz":
        return stream_of(read_recording(path))
    lines = [line for line in path.read_bytes().splitlines() if line.strip()]
    if not lines:
        raise FormatError(f"{path}: empty file; expected a stream that starts with its header")
    if _kind(lines[0]) == "header":
        return stream_of(read_recording(path))
    header = _header(path, lines[0])
    entries = tuple(_entry(path, number, line) for number, line in enumerate(lines[1:], 2))
    return Stream(
        header.policy,
        entries,
        header.page_size,
        header.profile,
        header.storage,
        frozenset(header.shared),
        header.note,
    )


def _kind(line: bytes) -> object:
    try:
        return msgspec.json.decode(line, type=dict[str, Any]).get("type")
    except (msgspec.DecodeError, RecursionError):
        return None


def _header(path: Path, line: bytes) -> _Header:
    if _kind(line) != "stream":
        raise FormatError(f"{path}, line 1: expected the header of a stream or of a recording")
    fields = msgspec.json.decode(line, type=dict[str, Any])
    if (version := fields.get("format")) != STREAM_FORMAT:
        raise FormatError(f"{path}: stream format {version!r}; expected format {STREAM_FORMAT}")
    try:
        header = msgspec.convert(fields, _Header)
        rules_for(header.profile)
    except (msgspec.ValidationError, UsageError) as error:
        raise FormatError(f"{path}, line 1: not the header of a stream ({error})") from error
    return header


def _entry(path: Path, number: int, line: bytes) -> Entry:
    try:
        read = _entries.decode(line)
        return read if isinstance(read, Restarted) else _sent(read)
    except (msgspec.DecodeError, RecursionError, UsageError) as error:
        raise FormatError(f"{path}, line {number}: not a line of a stream ({error})") from error


def _sent(read: _Batch) -> Sent:
    """Events are read as those of the wire are, and all of them must be readable."""
    if read.namespaces and len(read.namespaces) != len(read.events):
        raise UsageError(f"{len(read.namespaces)} namespaces for {len(read.events)} events")
    payload = msgspec.msgpack.encode([0.0, read.events, read.rank])
    batch = decode_batch(0, payload)
    if len(batch.events) < len(read.events):
        raise UsageError(batch.faults[0].detail)
    return Sent(read.worker, read.rank, batch.events, read.namespaces)


def save_stream(path: Path, stream: Stream) -> None:
    """Write a stream; reading gives the same back."""
    header = _Header(
        STREAM_FORMAT,
        stream.policy,
        stream.page_size,
        stream.profile,
        stream.storage,
        tuple(sorted(stream.shared)),
        stream.note,
    )
    lines = [header, *(_line(entry) for entry in stream.entries)]
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


def _line(entry: Entry) -> _Batch | Restarted:
    if isinstance(entry, Restarted):
        return entry
    return _Batch(entry.worker, entry.rank, _maps(entry.events), entry.namespaces)


def _maps(events: Sequence[KvEvent]) -> list[dict[str, Any]]:
    payload = encode_batch(Batch(0, 0.0, 0, tuple(events)), "map")
    maps: list[dict[str, Any]] = msgspec.msgpack.decode(payload)[1]
    return maps

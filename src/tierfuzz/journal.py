"""The journal: a line an operation, on disk before its request is sent, so a killed run can be replayed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import msgspec

from tierfuzz.errors import FormatError
from tierfuzz.program import FleetConfig, Operation, Program
from tierfuzz.runevents import CaseStarted, Emptied, OperationStarted, RunEvent, RunStarted

JOURNAL_FORMAT = 1


class JournalHead(msgspec.Struct, frozen=True, tag="journal"):
    """First line."""

    fleet: FleetConfig
    format: int = JOURNAL_FORMAT


class JournalCase(msgspec.Struct, frozen=True, tag="case"):
    """A new case begins, or an old one again: workers are empty."""

    number: int


class JournalOperation(msgspec.Struct, frozen=True, tag="operation"):
    """An operation that is about to be carried out."""

    operation: Operation


_Line = JournalHead | JournalCase | JournalOperation
_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[_Line] = msgspec.json.Decoder(_Line)


class Journal:
    """A listener that writes the journal of one fleet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._number = 0
        self._file: BinaryIO = path.open("wb")

    def on_event(self, event: RunEvent) -> None:
        """Write what a replay needs."""
        if isinstance(event, RunStarted):
            self._write(JournalHead(event.fleet))
        elif isinstance(event, CaseStarted | Emptied):
            self._number = event.number if isinstance(event, CaseStarted) else self._number
            self._write(JournalCase(self._number))
        elif isinstance(event, OperationStarted):
            self._write(JournalOperation(event.operation))

    def _write(self, line: _Line) -> None:
        self._file.write(_encode(line) + b"\n")
        self._file.flush()  # in the kernel's hands: a kill of this process loses nothing

    def close(self) -> None:
        """Close the file, synced."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def load_journal(path: Path) -> Program:
    """The program of the last case in a journal; a last line that was cut off is left out."""
    lines = path.read_bytes().split(b"\n")
    head = _read_head(path, lines[0])
    operations: list[Operation] = []
    for number, line in enumerate(lines[1:], 2):
        record = _read(path, number, line, last=number >= len(lines))
        if isinstance(record, JournalCase):
            operations.clear()
        elif isinstance(record, JournalOperation):
            operations.append(record.operation)
    return Program(head.fleet, tuple(operations))


class _AnyHead(msgspec.Struct):
    """What every version of a head has."""

    type: str
    format: int = JOURNAL_FORMAT


def _read_head(path: Path, line: bytes) -> JournalHead:
    """The version comes first: another one may mean anything by the rest."""
    try:
        seen = msgspec.json.decode(line, type=_AnyHead)
    except msgspec.DecodeError:
        seen = _AnyHead("")
    if seen.type != "journal":
        raise FormatError(f"{path}: no journal; expected its first line to be a head")
    if seen.format != JOURNAL_FORMAT:
        raise FormatError(f"{path}: journal format {seen.format}; expected format {JOURNAL_FORMAT}")
    head = _read(path, 1, line, last=False)
    assert isinstance(head, JournalHead)
    return head


def _read(path: Path, number: int, line: bytes, last: bool) -> _Line | None:
    if not line.strip():
        return None
    try:
        return _decoder.decode(line)
    except msgspec.DecodeError as error:
        if last:
            return None
        raise FormatError(f"{path}, line {number}: not a line of a journal ({error})") from error

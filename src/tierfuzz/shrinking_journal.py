"""The journal of a search: a line a run, so that a killed search goes on where it was."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from tierfuzz.errors import FormatError
from tierfuzz.program import Program, dump_program
from tierfuzz.shrink.trials import Tried
from tierfuzz.shrinking import ShrinkConfig

SHRINK_JOURNAL_FORMAT = 1


class SearchHead(msgspec.Struct, frozen=True, tag="shrink"):
    """First line: what is searched. Limits are not part of it: a search may go on with a larger budget."""

    program: str
    oracle: str
    accept: int
    tries: int
    format: int = SHRINK_JOURNAL_FORMAT


_Line = SearchHead | Tried
_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[_Line] = msgspec.json.Decoder(_Line)


class ShrinkJournal:
    """Opened for one search: `earlier` holds the runs of the same search that were made before.

    A journal of another search is begun anew; one of another format is refused and stays as it is.
    """

    def __init__(self, path: Path, program: Program, config: ShrinkConfig) -> None:
        self.path = path
        head = SearchHead(_digest(program), config.oracle, config.accept, config.tries)
        self.earlier = _read(path, head) if path.exists() else []
        path.write_bytes(b"".join(_encode(line) + b"\n" for line in (head, *self.earlier)))

    def note(self, tried: Tried) -> None:
        """One more run; in the file before the next one begins."""
        with self.path.open("ab") as file:
            file.write(_encode(tried) + b"\n")

    def done(self) -> None:
        """Nothing is left to go on with: the file goes."""
        self.path.unlink()


def _digest(program: Program) -> str:
    """With ids: verdicts name them."""
    return hashlib.sha256(dump_program(program)).hexdigest()


class _AnyHead(msgspec.Struct):
    """What every version of a head has."""

    type: str = ""
    format: int = 0


def _read(path: Path, expected: SearchHead) -> list[Tried]:
    """Its runs; none where it is of another search. A last line that was cut off is left out."""
    first, *lines = path.read_bytes().split(b"\n")
    try:
        head = msgspec.json.decode(first, type=_AnyHead)
    except msgspec.DecodeError:
        head = _AnyHead()
    if (head.type, head.format) != ("shrink", SHRINK_JOURNAL_FORMAT):
        raise FormatError(
            f"{path}: expected a shrink journal of format {SHRINK_JOURNAL_FORMAT}; move it away, or choose "
            "another --out"
        )
    if _decoder.decode(first) != expected:
        return []
    return [tried for line in lines if line.strip() and (tried := _tried(line)) is not None]


def _tried(line: bytes) -> Tried | None:
    try:
        record = _decoder.decode(line)
    except msgspec.DecodeError:
        return None
    return record if isinstance(record, Tried) else None

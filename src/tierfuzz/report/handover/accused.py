"""verdicts.json: what was violated, for programs that read a hand-over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from tierfuzz.errors import FormatError
from tierfuzz.verdict import Verdict

VERDICTS_FORMAT = 1
VERDICTS = "verdicts.json"


class VerdictFile(msgspec.Struct, frozen=True):
    """Verdicts of one failing case."""

    verdicts: tuple[Verdict, ...]
    format: int = VERDICTS_FORMAT
    kind: Literal["verdicts"] = "verdicts"


def dump_verdicts(verdicts: Sequence[Verdict]) -> str:
    """As JSON, ending in a newline."""
    encoded = msgspec.json.encode(VerdictFile(tuple(verdicts)))
    return msgspec.json.format(encoded, indent=1).decode() + "\n"


def load_verdicts(path: Path) -> tuple[Verdict, ...]:
    """Read a file; FormatError for another version, or what is none."""
    data = path.read_bytes()
    try:
        version = msgspec.json.decode(data, type=dict).get("format")
        if version != VERDICTS_FORMAT:
            raise FormatError(f"{path}: verdicts of format {version!r}; expected format {VERDICTS_FORMAT}")
        return msgspec.json.decode(data, type=VerdictFile).verdicts
    except msgspec.DecodeError as error:
        raise FormatError(f"{path}: no verdicts ({error}); expected the JSON of a hand-over") from error

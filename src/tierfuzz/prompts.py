"""Prompts: pieces of named, endless, deterministic token streams (recordings' token rule)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

import msgspec
import numpy as np
import numpy.typing as npt

from tierfuzz.errors import UsageError

VOCABULARY = 1000
MOST_CACHED = 1 << 22  # tokens; a soak names a fresh stream for every filler
_WORD = re.compile(r"w(0|[1-9][0-9]{0,8})")  # ids that fit into the four bytes of the hash chain
_streams: dict[str, npt.NDArray[np.int32]] = {}  # oldest growth first
_cached = 0  # tokens in _streams


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """Tokens start..stop-1 of a stream; "@ID" is the output of the earlier request ID of a program."""

    stream: str
    start: int
    stop: int

    def __post_init__(self) -> None:
        """Refuse pieces that name no tokens of any stream."""
        if not self.stream or not 0 <= self.start <= self.stop:
            raise UsageError(
                f"piece [{self.stream!r}, {self.start}, {self.stop}]: "
                "expected a stream name and 0 <= start <= stop"
            )

    def __len__(self) -> int:
        """Number of tokens."""
        return self.stop - self.start


def stream_tokens(name: str, start: int, stop: int) -> npt.NDArray[np.int32]:
    """Tokens start..stop-1 of a stream, int32, read-only, ids 1..1000; UsageError for wrong bounds.

    Token i is 1 + u32be(sha256("NAME/i")[:4]) mod 1000 (recordings, section 3).
    """
    Piece(name, start, stop)
    known = _streams.get(name)
    if known is None or len(known) < stop:
        known = _grow(name, known if known is not None else np.empty(0, np.int32), stop)
    return known[start:stop]


def _grow(name: str, known: npt.NDArray[np.int32], stop: int) -> npt.NDArray[np.int32]:
    size = max(stop, 2 * len(known), 64)
    fresh = [_token(name, index) for index in range(len(known), size)]
    grown = np.concatenate([known, np.array(fresh, np.int32)])
    grown.flags.writeable = False
    _keep(name, grown)
    return grown


def _keep(name: str, grown: npt.NDArray[np.int32]) -> None:
    """Cache a stream as the youngest, and forget the oldest ones beyond the bound."""
    global _cached
    _cached += len(grown) - len(_streams.pop(name, ()))
    _streams[name] = grown
    while _cached > MOST_CACHED and len(_streams) > 1:
        _cached -= len(_streams.pop(next(iter(_streams))))


def _token(name: str, index: int) -> int:
    return _id_of(f"{name}/{index}".encode())


def _id_of(text: bytes) -> int:
    return 1 + int.from_bytes(hashlib.sha256(text).digest()[:4], "big") % VOCABULARY


def tokens_of(pieces: Iterable[Piece]) -> tuple[int, ...]:
    """The token ids of a prompt; UsageError for a piece of outputs ("@ID"), which only a run can resolve."""
    tokens: list[int] = []
    for piece in pieces:
        if piece.stream.startswith("@"):
            raise UsageError(f"piece of {piece.stream!r}: outputs are known only while a program runs")
        tokens += stream_tokens(piece.stream, piece.start, piece.stop).tolist()
    return tuple(tokens)


def described(pieces: Iterable[Piece]) -> str:
    """A[0:165] + @op0[0:2]: which tokens of which stream, "@op0" being what op0 was answered."""
    return " + ".join(f"{piece.stream}[{piece.start}:{piece.stop}]" for piece in pieces)


def text_of(tokens: Iterable[int]) -> str:
    """Text form for chat endpoints: one word a token, "w" and the id (up to nine digits); reversible."""
    return " ".join(f"w{token}" for token in tokens)


def tokens_of_text(text: str) -> tuple[int, ...]:
    """Inverse of text_of; words of another form get a stable id of their own."""
    return tuple(_word_token(word) for word in text.split())


def _word_token(word: str) -> int:
    known = _WORD.fullmatch(word)
    return int(known[1]) if known else _id_of(word.encode("utf-8", "surrogatepass"))

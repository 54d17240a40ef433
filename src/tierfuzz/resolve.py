"""From operations to tokens: prompts with outputs of earlier requests, and the prompts of a filler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tierfuzz.errors import UsageError
from tierfuzz.program import Fill, FleetConfig, Generate
from tierfuzz.prompts import Piece, tokens_of

FILL_BOUND = 3.0  # a filler that waits for an effect sends at most this many times its share

Outputs = Mapping[str, tuple[int, ...]]


def resolve(pieces: tuple[Piece, ...], outputs: Outputs, own: str = "") -> tuple[int, ...]:
    """Token ids of a prompt; a piece of "@ID" is cut from the outputs of request ID. `own` goes before the
    names of streams, so that the same program has other tokens each time."""
    tokens: list[int] = []
    for piece in pieces:
        if not piece.stream.startswith("@"):
            tokens += tokens_of((Piece(own + piece.stream, piece.start, piece.stop),))
            continue
        name = piece.stream[1:]
        if name not in outputs:
            raise UsageError(f"piece of {piece.stream!r}: no request {name!r} has ended before")
        tokens += outputs[name][piece.start : piece.stop]
    return tuple(tokens)


def filler_prompts(fill: Fill, fleet: FleetConfig) -> Iterator[tuple[Generate, bool]]:
    """Requests of a filler in order, and whether each still belongs to its share."""
    length = max(fleet.page_size, int(fleet.device_tokens * fill.prompt_share))
    wanted = fleet.device_tokens * fill.share
    whole = length // fleet.page_size * fleet.page_size
    number, sent = 0, 0
    while sent < wanted * FILL_BOUND:
        piece = Piece(f"{fill.stream}.{number}", 0, length)
        yield (
            Generate(f"{fill.id}.{number}", fill.worker, (piece,), fill.outputs, "filler"),
            sent < wanted,
        )
        sent += whole
        number += 1

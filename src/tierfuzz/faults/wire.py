"""Faults of the wire: what an engine can send that a decoder does not expect."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec

from tierfuzz.model.faults import Fault

TOKENS_AT = 3  # place of token_ids in a store that is an array


class TokenPairs(Fault):
    """Stores carry pairs of tokens, by which engines with speculative decoding key their tree."""

    oracle = "malformed-event"
    source = "T36, llm-d/llm-d-kv-cache#603"

    def send(self, publisher: object, inner: Callable[[int, bytes], None], seq: int, payload: bytes) -> None:
        """Pair each token with the next one."""
        del publisher
        stamp, events, rank = msgspec.msgpack.decode(payload)
        for event in events:
            key: Any = "token_ids" if isinstance(event, dict) else TOKENS_AT
            if (event.get("type") if isinstance(event, dict) else event[0]) == "BlockStored":
                tokens = event[key]
                event[key] = list(pairwise([*tokens, tokens[-1]]))
        inner(seq, msgspec.msgpack.encode([stamp, events, rank]))

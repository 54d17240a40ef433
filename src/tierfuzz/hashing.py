"""Block hashes: a SHA-256 chain over whole pages (engine-semantics 3.4)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np


def signed64(digest: bytes) -> int:
    """The hash that events carry: the first 8 bytes, big-endian, signed."""
    return int.from_bytes(digest[:8], "big", signed=True)


def extend_chain(digest: bytes, page_tokens: Sequence[int]) -> bytes:
    """Digest of a page after `digest` (empty for the first page)."""
    return hashlib.sha256(digest + np.array(page_tokens, dtype="<u4").tobytes()).digest()


def page_hashes(tokens: Sequence[int], page_size: int, seed: bytes = b"") -> tuple[int, ...]:
    """Signed 64-bit hashes of the whole pages of `tokens`, chained from `seed`."""
    whole = len(tokens) // page_size * page_size
    packed = np.array(tokens[:whole], dtype="<u4").tobytes()
    digest, hashes, step = seed, [], page_size * 4
    for at in range(0, len(packed), step):
        digest = hashlib.sha256(digest + packed[at : at + step]).digest()
        hashes.append(signed64(digest))
    return tuple(hashes)

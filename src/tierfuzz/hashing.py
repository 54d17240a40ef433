"""Block hashes: a SHA-256 chain over whole pages (engine-semantics 3.4, seeds of 0.5.23 in section 8)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np


def signed64(digest: bytes) -> int:
    """The hash that events carry: the first 8 bytes, big-endian, signed."""
    return int.from_bytes(digest[:8], "big", signed=True)


def extend_chain(digest: bytes, page_tokens: Sequence[int]) -> bytes:
    """Digest (32 bytes) of a page after `digest`: that of the page before, a seed, or empty."""
    return hashlib.sha256(digest + _packed(page_tokens)).digest()


def page_hashes(tokens: Sequence[int], page_size: int, seed: bytes = b"") -> tuple[int, ...]:
    """Signed 64-bit hashes of the whole pages of `tokens` (ids below 2**32), chained from `seed`."""
    whole = len(tokens) // page_size * page_size
    return _chain(_packed(tokens[:whole]), page_size * 4, seed)


def salt_seed(cache_salt: str | None) -> bytes:
    """Seed of the event chain of 0.5.23 under a cache salt; empty without one."""
    if not cache_salt:  # the engine takes an empty salt for none
        return b""
    return hashlib.sha256(b"sglang-cache-salt-v1\0" + cache_salt.encode()).digest()


def storage_seed(extra_key: str | None, cache_salt: str | None = None) -> bytes:
    """Seed of the storage keys of 0.5.23 in a namespace; empty without one.

    The parts are told apart: each is a mark of presence, its length in 8 bytes, and its text.
    """
    if extra_key is None and cache_salt is None:
        return b""
    parts = (_part(part) for part in (extra_key, cache_salt))
    return hashlib.sha256(b"sglang-cache-namespace-v1" + b"".join(parts)).digest()


def _part(text: str | None) -> bytes:
    if text is None:
        return b"\0"
    encoded = text.encode()
    return b"\1" + len(encoded).to_bytes(8, "little") + encoded


def _packed(tokens: Sequence[int]) -> bytes:
    return np.array(tokens, dtype="<u4").tobytes()


# One request asks several times for the hashes of one prompt.
@lru_cache(maxsize=64)
def _chain(packed: bytes, step: int, seed: bytes) -> tuple[int, ...]:
    digest, hashes = seed, []
    for at in range(0, len(packed), step):
        digest = hashlib.sha256(digest + packed[at : at + step]).digest()
        hashes.append(signed64(digest))
    return tuple(hashes)

"""Seeds that keep namespaces apart in the hash chains of 0.5.23 (reference 8)."""

from __future__ import annotations

import hashlib
from itertools import combinations

import pytest

from tierfuzz.hashing import extend_chain, page_hashes, salt_seed, signed64, storage_seed


def test_a_salt_is_hashed_before_the_first_page() -> None:
    seed = hashlib.sha256(b"sglang-cache-salt-v1\0tenant-a").digest()
    page = hashlib.sha256(seed + bytes.fromhex("0100000002000000")).digest()
    assert salt_seed("tenant-a") == seed
    assert page_hashes([1, 2], 2, salt_seed("tenant-a")) == (signed64(page),)
    assert extend_chain(seed, [1, 2]) == page


@pytest.mark.parametrize("none", [None, ""])
def test_no_salt_leaves_the_chain_as_it_is(none: str | None) -> None:
    assert salt_seed(none) == b""
    assert page_hashes(range(1, 5), 4, salt_seed(none)) == (-3488128144981237669,)


def test_the_parts_of_a_storage_namespace_are_told_apart() -> None:
    parts = [None, "", "a", "ab", "b", "bc", "c", "abc"]
    namespaces = [(key, salt) for key in parts for salt in parts]
    seeds = [storage_seed(key, salt) for key, salt in namespaces]
    assert all(one != other for one, other in combinations(seeds, 2))
    assert storage_seed(None) == b""


def test_a_storage_seed_is_presence_length_and_text_of_each_part() -> None:
    body = b"sglang-cache-namespace-v1" + b"\1" + b"\2" + b"\0" * 7 + b"ab" + b"\0"
    assert storage_seed("ab") == hashlib.sha256(body).digest()
    salted = b"sglang-cache-namespace-v1" + b"\0" + b"\1" + b"\2" + b"\0" * 7 + "é".encode()
    assert storage_seed(None, "é") == hashlib.sha256(salted).digest()

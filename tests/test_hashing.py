"""Block hashes against known vectors, and the chain page by page."""

from __future__ import annotations

import hashlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tierfuzz.hashing import extend_chain, page_hashes, signed64
from tierfuzz.prompts import Piece, tokens_of

TOKENS = st.lists(st.integers(0, 2**32 - 1), max_size=40)


def test_two_pages_of_four_tokens() -> None:
    assert page_hashes(range(1, 9), 4) == (-3488128144981237669, 5674439469042975057)


def test_the_first_recorded_pages_of_stream_a() -> None:
    tokens = tokens_of((Piece("A", 0, 32),))
    assert page_hashes(tokens, 16) == (7595355333618146164, -7499255575317279893)


@pytest.mark.parametrize(
    ("head", "value"),
    [("00" * 7 + "01", 1), ("7f" + "ff" * 7, 2**63 - 1), ("80" + "00" * 7, -(2**63)), ("ff" * 8, -1)],
)
def test_the_first_eight_bytes_are_big_endian_and_signed(head: str, value: int) -> None:
    assert signed64(bytes.fromhex(head) + b"the rest is not looked at") == value


def test_a_page_is_hashed_as_little_endian_words_of_four_bytes() -> None:
    digest = hashlib.sha256(b"seed" + struct.pack("<4I", 1, 2, 3, 2**32 - 1)).digest()
    assert extend_chain(b"seed", [1, 2, 3, 2**32 - 1]) == digest


@settings(deadline=None)
@given(TOKENS, st.integers(1, 8), st.binary(max_size=32))
def test_the_chain_grows_page_by_page(tokens: list[int], page: int, seed: bytes) -> None:
    digest, expected = seed, []
    for at in range(0, len(tokens) - page + 1, page):
        digest = extend_chain(digest, tokens[at : at + page])
        expected.append(signed64(digest))
    assert page_hashes(tokens, page, seed) == tuple(expected)


@settings(deadline=None)
@given(TOKENS, TOKENS, st.integers(1, 8))
def test_a_longer_prompt_keeps_the_hashes_of_its_prefix(head: list[int], tail: list[int], page: int) -> None:
    short = page_hashes(head, page)
    assert len(short) == len(head) // page
    assert page_hashes(head + tail, page)[: len(short)] == short


def test_one_token_changes_its_page_and_all_after_it() -> None:
    before, after = page_hashes([1] * 16, 4), page_hashes([1] * 5 + [2] + [1] * 10, 4)
    assert [left == right for left, right in zip(before, after, strict=True)] == [True, False, False, False]

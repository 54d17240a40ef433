"""Named token streams: the recordings' token rule, pieces, refusals, and the reversible text form."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tierfuzz import prompts
from tierfuzz.errors import UsageError
from tierfuzz.prompts import Piece, stream_tokens, text_of, tokens_of, tokens_of_text


@pytest.mark.parametrize(
    ("stream", "index", "token"),
    [("A", 0, 16), ("A", 1, 467), ("A", 2, 441), ("f1", 0, 598), ("s0", 0, 848)],
)
def test_tokens_follow_the_rule_of_the_recordings(stream: str, index: int, token: int) -> None:
    assert stream_tokens(stream, index, index + 1).tolist() == [token]


@settings(deadline=None)
@given(st.text(min_size=1, max_size=8), st.integers(0, 300), st.integers(0, 300))
def test_a_slice_is_the_same_whatever_was_asked_for_before(name: str, one: int, other: int) -> None:
    start, stop = sorted((one, other))
    rule = [hashlib.sha256(f"{name}/{at}".encode()).digest()[:4] for at in range(start, stop)]
    found = stream_tokens(name, start, stop)
    assert found.tolist() == [1 + int.from_bytes(digest, "big") % 1000 for digest in rule]
    assert found.dtype == np.int32


def test_a_stream_that_grows_keeps_its_beginning() -> None:
    short = stream_tokens("grows", 0, 10).tolist()
    assert stream_tokens("grows", 0, 5000)[:10].tolist() == short


def test_tokens_are_read_only_because_they_are_shared() -> None:
    with pytest.raises(ValueError, match="read-only"):
        stream_tokens("A", 0, 4)[0] = 1


def test_forgotten_streams_come_back_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts, "MOST_CACHED", 1000)
    before = stream_tokens("forgotten", 0, 200).tolist()
    for number in range(20):
        stream_tokens(f"crowd{number}", 0, 200)
    assert "forgotten" not in prompts._streams
    assert stream_tokens("forgotten", 0, 200).tolist() == before


def test_pieces_are_joined_in_order() -> None:
    pieces = (Piece("A", 0, 3), Piece("f1", 0, 1), Piece("A", 1, 2), Piece("s0", 0, 0))
    assert tokens_of(pieces) == (16, 467, 441, 598, 467)
    assert [len(piece) for piece in pieces] == [3, 1, 1, 0]
    assert tokens_of(()) == ()


@pytest.mark.parametrize(("stream", "start", "stop"), [("", 0, 1), ("A", -1, 1), ("A", 2, 1)])
def test_pieces_that_name_no_tokens_are_refused(stream: str, start: int, stop: int) -> None:
    with pytest.raises(UsageError, match=r"expected a stream name and 0 <= start <= stop"):
        Piece(stream, start, stop)
    with pytest.raises(UsageError, match=rf"piece \['{stream}', {start}, {stop}\]"):
        stream_tokens(stream, start, stop)


def test_outputs_of_a_request_are_no_stream() -> None:
    with pytest.raises(UsageError, match="'@a': outputs are known only while a program runs"):
        tokens_of((Piece("A", 0, 1), Piece("@a", 0, 1)))


@settings(deadline=None)
@given(st.lists(st.integers(0, 999_999_999)))
def test_the_text_form_is_reversible(tokens: list[int]) -> None:
    assert tokens_of_text(text_of(tokens)) == tuple(tokens)


def test_the_text_form_is_one_word_a_token() -> None:
    assert text_of([16, 467, 0]) == "w16 w467 w0"
    assert text_of([]) == ""


@settings(deadline=None)
@given(st.text())
def test_any_text_has_one_stable_token_a_word(text: str) -> None:
    tokens = tokens_of_text(text)
    assert len(tokens) == len(text.split())
    assert tokens == tokens_of_text(" ".join(text.split()))
    assert all(0 <= token < 1 << 32 for token in tokens)


@pytest.mark.parametrize("word", ["hello", "w", "w01", "w1234567890", "W7", "w-1", "w\u0661", "\ud800"])
def test_words_of_another_form_are_hashed_not_parsed(word: str) -> None:
    (token,) = tokens_of_text(word)
    assert 1 <= token <= 1000
    assert tokens_of_text(f"{word} {word}x")[0] == token

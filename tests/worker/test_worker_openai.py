"""The OpenAI endpoints' JSON and streams (engine-semantics 2.2)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tierfuzz.observation import TierSplit
from tierfuzz.worker.openai import OpenAiAnswer, OpenAiCall, openai_body, openai_path, read_openai

COMPLETION = OpenAiCall((1, 2, 3), 4)
CHAT = OpenAiCall("w1 w2", 4, chat=True)
DETAILS = {"cached_tokens_details": {"device": 16, "host": 48}}
USAGE = {"prompt_tokens": 65, "completion_tokens": 4, "total_tokens": 69, "prompt_tokens_details": None}


def whole(choice: dict[str, Any], kind: str = "text_completion", **more: Any) -> bytes:
    """A whole reply."""
    choices = [{"index": 0, "logprobs": None, "finish_reason": "length"} | choice]
    return json.dumps({"id": "x", "object": kind, "choices": choices, "usage": USAGE} | more).encode()


def stream(*chunks: dict[str, Any] | str, kind: str = "chat.completion.chunk") -> bytes:
    """Server-sent events; text is taken as it is."""
    data = [c if isinstance(c, str) else json.dumps({"id": "x", "object": kind} | c) for c in chunks]
    return "".join(f"data: {one}\n\n" for one in data).encode()


def delta(content: str | None, finish: str | None = None) -> dict[str, Any]:
    """A chunk of a chat."""
    return {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": finish}]}


def test_a_completion_may_carry_token_ids() -> None:
    body = json.loads(openai_body(OpenAiCall((1, 2, 3), 4, namespace="a", salt="b", rid="r")))
    assert openai_path(COMPLETION) == "/v1/completions"
    assert body["prompt"] == [1, 2, 3]
    assert body["return_cached_tokens_details"] is True
    assert (body["extra_key"], body["cache_salt"], body["rid"]) == ("a", "b", "r")
    assert "stream_options" not in body


def test_a_chat_carries_one_message_and_a_stream_asks_for_usage() -> None:
    body = json.loads(openai_body(OpenAiCall("w1 w2", 4, chat=True, stream=True)))
    assert openai_path(CHAT) == "/v1/chat/completions"
    assert body["messages"] == [{"role": "user", "content": "w1 w2"}]
    assert body["stream_options"] == {"include_usage": True}
    assert not {"prompt", "extra_key", "cache_salt", "rid"} & set(body)


def test_a_whole_completion() -> None:
    answer = read_openai(COMPLETION, whole({"text": "w5 w6"}, sglext=DETAILS))
    assert answer == OpenAiAnswer("w5 w6", "length", 65, 4, None, TierSplit(16, 48))


def test_a_whole_chat() -> None:
    reply = whole({"message": {"role": "assistant", "content": "w5"}}, "chat.completion")
    assert read_openai(CHAT, reply) == OpenAiAnswer("w5", "length", 65, 4, None, None)


def test_cached_tokens_of_usage() -> None:
    usage = USAGE | {"prompt_tokens_details": {"cached_tokens": 64}}
    assert read_openai(COMPLETION, whole({"text": ""}, usage=usage)).cached_tokens == 64


def test_a_stream_is_put_together() -> None:
    data = stream(
        delta(""),
        delta("w5"),
        delta(" w6"),
        delta(None, "length"),
        {"choices": [], "sglext": DETAILS},
        {"choices": [], "usage": USAGE},
        "[DONE]",
    )
    call = OpenAiCall("w1", 4, chat=True, stream=True)
    assert read_openai(call, data) == OpenAiAnswer("w5 w6", "length", 65, 4, None, TierSplit(16, 48))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (stream(delta("w5", "length")), r"without data: \[DONE\]"),
        (stream(delta("w5"), "[DONE]"), "without a finish_reason"),
        (stream({"error": {"message": "boom"}}, "[DONE]"), "missing required field"),
        (stream("{", "[DONE]"), "truncated"),
        (b"event: x\n\n", "stream line b'event: x'"),
        (b"", r"without data: \[DONE\]"),
    ],
)
def test_a_bad_stream_is_refused(data: bytes, told: str) -> None:
    with pytest.raises(msgspec.DecodeError, match=told):
        read_openai(OpenAiCall("w1", 4, chat=True, stream=True), data)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (whole({"text": ""}, choices=[]), "0 choices without a finish_reason"),
        (whole({"text": ""}, kind="something"), "object"),
        (whole({"text": ""}, sglext={"cached_tokens_details": {"device": 1}}), "host"),
        (whole({"text": 5}), "text"),
        (b"{}", "object"),
    ],
)
def test_a_bad_reply_is_refused(data: bytes, told: str) -> None:
    with pytest.raises(msgspec.DecodeError, match=told):
        read_openai(COMPLETION, data)

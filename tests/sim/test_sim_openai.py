"""/v1/completions and /v1/chat/completions of a live worker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sim_process import DEVICE, PAGE, Sim, running, tokens

from tierfuzz.prompts import text_of

PREFIX = tokens("a", 4 * PAGE + 1)


@pytest.fixture(scope="module")
def worker() -> Iterator[Sim]:
    """One worker for the module."""
    with running("--enable-cache-report") as sim:
        yield sim


@pytest.fixture
def sim(worker: Sim) -> Sim:
    """The worker, empty."""
    assert worker.flush() == 200
    return worker


def complete(sim: Sim, **request: Any) -> dict[str, Any]:
    """A completion of PREFIX unless another prompt is given."""
    reply = sim.http.post("/v1/completions", json={"prompt": PREFIX, "max_tokens": 2, **request})
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def chat(sim: Sim, *contents: Any, **request: Any) -> dict[str, Any]:
    """A chat of user messages."""
    messages = [{"role": "user", "content": content} for content in contents]
    reply = sim.http.post("/v1/chat/completions", json={"messages": messages, "max_tokens": 2, **request})
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def chunks(sim: Sim, path: str, **request: Any) -> list[dict[str, Any]]:
    """The chunks of a stream; the end mark is checked."""
    with sim.http.stream("POST", path, json={**request, "stream": True}) as reply:
        lines = [line for line in reply.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def push_off_device(sim: Sim) -> None:
    """Turn the device pool over."""
    for stream in ("f1", "f2", "f3"):
        sim.generate(tokens(stream, DEVICE // 2))


def test_a_completion_has_the_shape_of_the_engine(sim: Sim) -> None:
    reply = complete(sim, rid="mine")
    outputs = sim.generate(PREFIX, 2)["output_ids"]
    assert reply.pop("created") > 0
    assert reply == {
        "id": "mine",
        "object": "text_completion",
        "model": "tiny",
        "choices": [
            {
                "index": 0,
                "text": text_of(outputs),
                "logprobs": None,
                "finish_reason": "length",
                "matched_stop": None,
            }
        ],
        "metadata": {"weight_version": "default"},
        "usage": {
            "prompt_tokens": 65,
            "total_tokens": 67,
            "completion_tokens": 2,
            "prompt_tokens_details": None,
            "reasoning_tokens": 0,
        },
    }


def test_a_chat_has_the_shape_of_the_engine_and_is_the_words_of_its_messages(sim: Sim) -> None:
    half = len(PREFIX) // 2
    reply = chat(sim, text_of(PREFIX[:half]), [{"type": "text", "text": text_of(PREFIX[half:])}], model="m")
    assert reply["object"] == "chat.completion"
    assert reply["model"] == "m"
    assert reply["usage"]["prompt_tokens"] == 65
    message = reply["choices"][0]["message"]
    assert message["role"] == "assistant"
    assert message["content"] == text_of(sim.generate(PREFIX, 2)["output_ids"])
    assert reply["choices"][0]["finish_reason"] == "length"
    assert complete(sim)["usage"]["prompt_tokens_details"] == {"cached_tokens": 64}


def test_details_come_only_when_asked_and_only_when_something_was_counted(sim: Sim) -> None:
    assert "sglext" not in complete(sim, return_cached_tokens_details=True)
    push_off_device(sim)
    reply = complete(sim, return_cached_tokens_details=True)
    assert reply["sglext"] == {"cached_tokens_details": {"device": 0, "host": 64}}
    assert "sglext" not in complete(sim)
    assert chat(sim, text_of(PREFIX), return_cached_tokens_details=True)["sglext"] == {
        "cached_tokens_details": {"device": 64, "host": 0}
    }


def test_without_the_report_flag_usage_has_no_details() -> None:
    with running() as plain:
        complete(plain)
        assert complete(plain)["usage"]["prompt_tokens_details"] is None


def test_a_prompt_may_be_text_or_a_list(sim: Sim) -> None:
    ids = [tokens("a", 20), tokens("b", 30)]
    reply = complete(sim, prompt=ids)
    assert [choice["index"] for choice in reply["choices"]] == [0, 1]
    assert reply["usage"] | {} == {**reply["usage"], "prompt_tokens": 50, "completion_tokens": 4}
    again = complete(sim, prompt=[text_of(prompt) for prompt in ids])
    assert [c["text"] for c in again["choices"]] == [c["text"] for c in reply["choices"]]
    assert complete(sim, prompt=text_of(ids[0]))["choices"][0]["text"] == reply["choices"][0]["text"]


def test_salt_and_extra_key_are_one_string(sim: Sim) -> None:
    complete(sim, cache_salt="ab", extra_key="c")
    assert complete(sim)["usage"]["prompt_tokens_details"] is None
    hit = {"cached_tokens": 64}
    assert complete(sim, cache_salt="a", extra_key="bc")["usage"]["prompt_tokens_details"] == hit
    assert sim.cached(PREFIX, extra_key="abc")[0] == 64


def test_a_completion_stream_adds_up_and_ends_with_details_then_usage(sim: Sim) -> None:
    whole = complete(sim, max_tokens=5)
    found = chunks(
        sim,
        "/v1/completions",
        prompt=PREFIX,
        max_tokens=5,
        return_cached_tokens_details=True,
        stream_options={"include_usage": True},
    )
    content = [chunk for chunk in found if chunk["choices"]]
    assert len(content) == 5
    assert "".join(chunk["choices"][0]["text"] for chunk in content) == whole["choices"][0]["text"]
    assert [chunk["choices"][0]["finish_reason"] for chunk in content] == [None] * 4 + ["length"]
    extension, usage = found[5:]
    assert extension["sglext"] == {"cached_tokens_details": {"device": 64, "host": 0}}
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 5


def test_a_chat_stream_names_its_role_first_and_its_end_last(sim: Sim) -> None:
    whole = chat(sim, text_of(PREFIX), max_tokens=3)
    messages = [{"role": "user", "content": text_of(PREFIX)}]
    found = chunks(sim, "/v1/chat/completions", messages=messages, max_completion_tokens=3)
    deltas = [chunk["choices"][0]["delta"] for chunk in found]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert deltas[-1] == {}
    assert found[-1]["choices"][0]["finish_reason"] == "length"
    text = "".join(delta.get("content", "") for delta in deltas)
    assert text == whole["choices"][0]["message"]["content"]
    assert {chunk["object"] for chunk in found} == {"chat.completion.chunk"}


def test_a_stream_without_hits_or_wishes_has_content_only(sim: Sim) -> None:
    found = chunks(sim, "/v1/completions", prompt=PREFIX, max_tokens=2, return_cached_tokens_details=True)
    assert [len(chunk["choices"]) for chunk in found] == [1, 1]


@pytest.mark.parametrize(
    ("path", "request_body", "reason"),
    [
        ("/v1/completions", {"prompt": []}, "empty"),
        ("/v1/completions", {"prompt": ["w1", 2]}, "one kind"),
        ("/v1/completions", {"prompt": [1], "n": 2}, "n=1"),
        ("/v1/completions", {"prompt": [[1], [2]], "stream": True}, "one prompt a streamed request"),
        ("/v1/completions", {"prompt": [1] * 1018}, "fewer than 1018"),
        ("/v1/chat/completions", {"messages": []}, "empty"),
        ("/v1/chat/completions", {"messages": [{"content": "x"}]}, "role"),
    ],
)
def test_refusals_have_the_error_object(
    sim: Sim, path: str, request_body: dict[str, Any], reason: str
) -> None:
    reply = sim.http.post(path, json=request_body)
    assert reply.status_code == 400
    error = reply.json()
    assert reason in error.pop("message")
    assert error == {"object": "error", "type": "BadRequestError", "param": None, "code": 400}

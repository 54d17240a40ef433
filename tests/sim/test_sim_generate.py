"""/generate of a live worker: shapes, accounting, streams, batches, refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sim_process import DEVICE, PAGE, Sim, body, running, tokens

from tierfuzz.prompts import text_of


@pytest.fixture(scope="module")
def worker() -> Iterator[Sim]:
    """One worker for the module."""
    with running() as sim:
        yield sim


@pytest.fixture
def sim(worker: Sim) -> Sim:
    """The worker, empty."""
    assert worker.flush() == 200
    return worker


def streamed(sim: Sim, **request: Any) -> list[dict[str, Any]]:
    """The chunks of a streamed request; the end mark is checked."""
    with sim.http.stream("POST", "/generate", json={**request, "stream": True}) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in reply.iter_lines() if line]
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def refusal(sim: Sim, **request: Any) -> str:
    """The message of a request that is refused."""
    reply = sim.http.post("/generate", json=request)
    assert reply.status_code == 400, reply.text
    assert list(reply.json()) == ["error"]
    return str(reply.json()["error"]["message"])


def test_the_reply_has_exactly_the_engines_keys(sim: Sim) -> None:
    sim.generate(tokens("a", 4 * PAGE))
    reply = sim.generate(tokens("a", 4 * PAGE + 1), 8, rid="mine")
    assert list(reply) == ["text", "output_ids", "meta_info"]
    assert len(reply["output_ids"]) == 8
    assert reply["text"] == text_of(reply["output_ids"])
    meta = reply["meta_info"]
    assert meta.pop("e2e_latency") > 0
    assert meta == {
        "id": "mine",
        "finish_reason": {"type": "length", "length": 8},
        "prompt_tokens": 65,
        "weight_version": "default",
        "num_retractions": 0,
        "reasoning_tokens": 0,
        "completion_tokens": 8,
        "cached_tokens": 64,
        "cached_tokens_details": {"device": 64, "host": 0},
    }


def test_a_prefix_pushed_off_the_device_is_served_from_host(sim: Sim) -> None:
    prefix = tokens("a", 4 * PAGE + 1)
    assert sim.cached(prefix) == (0, None)
    for stream in ("f1", "f2", "f3"):
        sim.generate(tokens(stream, DEVICE // 2))
    assert sim.cached(prefix) == (64, {"device": 0, "host": 64})
    assert sim.cached(prefix) == (64, {"device": 64, "host": 0})


def test_text_and_token_ids_are_the_same_prompt(sim: Sim) -> None:
    ids = tokens("a", 3 * PAGE + 1)
    first = sim.generate(ids, 3)
    reply = sim.http.post("/generate", json={"text": text_of(ids), "sampling_params": {"max_new_tokens": 3}})
    again = reply.json()
    assert again["output_ids"] == first["output_ids"]
    assert again["meta_info"]["cached_tokens"] == 48


def test_outputs_follow_from_the_prompt_and_forced_ones_win(sim: Sim) -> None:
    ids = tokens("a", 40)
    outputs = sim.generate(ids, 4)["output_ids"]
    assert sim.generate(ids, 4)["output_ids"] == outputs
    assert sim.generate(tokens("b", 40), 4)["output_ids"] != outputs
    params = {"max_new_tokens": 3, "custom_params": {"forced_output_ids": [7, 8, 9]}}
    reply = sim.http.post("/generate", json={"input_ids": ids, "sampling_params": params}).json()
    assert reply["output_ids"] == [7, 8, 9]


def test_namespaces_share_nothing_and_a_salt_is_not_read_here(sim: Sim) -> None:
    ids = tokens("a", 2 * PAGE + 1)
    assert sim.cached(ids)[0] == 0
    assert sim.cached(ids, extra_key="tenant")[0] == 0
    assert sim.cached(ids, extra_key="tenant", cache_salt="salt")[0] == 32
    assert sim.cached(ids)[0] == 32


def test_no_outputs_by_default_asks_for_128(sim: Sim) -> None:
    reply = sim.http.post("/generate", json={"input_ids": tokens("a", 20)}).json()
    assert reply["meta_info"]["completion_tokens"] == 128


def test_null_outputs_fill_the_room(sim: Sim) -> None:
    params = {"max_new_tokens": None}
    reply = sim.http.post("/generate", json={"input_ids": tokens("a", 900), "sampling_params": params}).json()
    assert reply["meta_info"]["completion_tokens"] == DEVICE - PAGE - 900 - 1


def test_logprobs_come_only_when_asked_and_their_start_caps_the_match(sim: Sim) -> None:
    ids = tokens("a", 4 * PAGE + 1)
    assert "output_token_logprobs" not in sim.generate(ids, 2)["meta_info"]
    meta = sim.generate(ids, 2, return_logprob=True, logprob_start_len=40)["meta_info"]
    assert meta["cached_tokens"] == 32  # whole pages before the start
    assert [entry[1] for entry in meta["input_token_logprobs"]] == ids[40:]
    assert meta["input_token_logprobs"][0][0] is None
    assert len(meta["output_token_logprobs"]) == 2
    assert sim.generate(ids, 2, return_logprob=True)["meta_info"]["cached_tokens"] == 64


def test_a_stream_repeats_the_outputs_so_far_and_ends_complete(sim: Sim) -> None:
    ids = tokens("a", 2 * PAGE + 1)
    whole = sim.generate(ids, 6)
    chunks = streamed(sim, input_ids=ids, sampling_params={"max_new_tokens": 6})
    assert [chunk["output_ids"] for chunk in chunks[:-1]] == [whole["output_ids"][:n] for n in range(1, 6)]
    assert all(chunk["meta_info"]["finish_reason"] is None for chunk in chunks[:-1])
    assert all(chunk["meta_info"]["cached_tokens"] == 32 for chunk in chunks)
    assert chunks[-1]["output_ids"] == whole["output_ids"]
    assert chunks[-1]["meta_info"]["finish_reason"] == {"type": "length", "length": 6}


def test_a_stream_of_no_outputs_has_one_chunk(sim: Sim) -> None:
    chunks = streamed(sim, input_ids=tokens("a", 20), sampling_params={"max_new_tokens": 0})
    assert [chunk["output_ids"] for chunk in chunks] == [[]]


def test_a_list_of_prompts_gives_a_list_of_replies(sim: Sim) -> None:
    prompts = [tokens("a", 20), tokens("b", 30)]
    replies = sim.http.post(
        "/generate", json={**body(prompts[0], 1), "input_ids": prompts, "rid": "r"}
    ).json()
    assert [reply["meta_info"]["prompt_tokens"] for reply in replies] == [20, 30]
    assert [reply["meta_info"]["id"] for reply in replies] == ["r_0", "r_1"]
    texts = [text_of(prompt) for prompt in prompts]
    request = {"text": texts, "sampling_params": {"max_new_tokens": 1}}
    assert [reply["output_ids"] for reply in sim.http.post("/generate", json=request).json()] == [
        reply["output_ids"] for reply in replies
    ]


def test_put_is_taken_as_well(sim: Sim) -> None:
    assert sim.http.put("/generate", json=body(tokens("a", 20))).status_code == 200


@pytest.mark.parametrize(
    ("request_body", "reason"),
    [
        ({}, "either text or input_ids"),
        ({"text": "w1", "input_ids": [1]}, "either text or input_ids"),
        ({"input_ids": []}, "empty"),
        ({"input_ids": [[1], 2]}, "one prompt, or a list of prompts"),
        ({"input_ids": [-1]}, "$.input_ids[0]"),
        ({"input_ids": ["x"]}, "$.input_ids[0]"),
        ({"input_ids": [1], "sampling_params": {"max_new_tokens": -1}}, "max_new_tokens"),
        ({"input_ids": [1], "sampling_params": {"n": 2}}, "n=1"),
        ({"input_ids": [[1], [2]], "stream": True}, "one prompt a streamed request"),
        ({"input_ids": [1], "return_logprob": True, "logprob_start_len": 5}, "1 tokens only"),
    ],
)
def test_bad_bodies_are_refused_with_the_reason(sim: Sim, request_body: dict[str, Any], reason: str) -> None:
    assert reason in refusal(sim, **request_body)


def test_a_body_that_is_not_json_is_refused(sim: Sim) -> None:
    reply = sim.http.post("/generate", content=b"{")
    assert reply.status_code == 400
    assert "bad request body" in reply.json()["error"]["message"]


def test_prompts_that_can_never_run_are_refused_at_the_limit(sim: Sim) -> None:
    limit = sim.http.get("/server_info").json()["max_req_input_len"]
    assert limit == 1018
    assert f"fewer than {limit}" in refusal(sim, **body(tokens("a", limit)))
    assert "device pool has 1024" in refusal(sim, **body(tokens("a", limit - 1)))
    assert "device pool has 1024" in refusal(sim, **body(tokens("a", 1000), 8))
    assert sim.generate(tokens("a", 1000), 7)["meta_info"]["completion_tokens"] == 7


def test_unknown_paths_and_methods_are_plain_errors(sim: Sim) -> None:
    assert sim.http.get("/no-such-path").status_code == 404
    assert sim.http.get("/generate").status_code == 405

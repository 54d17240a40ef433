"""The JSON of /generate, both ways (engine-semantics 2, 2.1, 6.5)."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest

from tierfuzz.errors import RequestFailed
from tierfuzz.observation import TierSplit
from tierfuzz.worker.calls import Answer, Call, read_reply, request_body

# The example of engine-semantics 6.5, with token ids.
REPLY: dict[str, Any] = {
    "text": "...",
    "output_ids": [5, 6, 7, 8, 9, 10, 11, 12],
    "meta_info": {
        "id": "r1",
        "finish_reason": {"type": "length", "length": 8},
        "prompt_tokens": 65,
        "weight_version": "default",
        "num_retractions": 0,
        "reasoning_tokens": 0,
        "completion_tokens": 8,
        "cached_tokens": 64,
        "cached_tokens_details": {"device": 16, "host": 48},
        "e2e_latency": 0.03,
    },
}


def read(reply: Any) -> Answer:
    """Read a reply given as an object or as bytes."""
    return read_reply(reply if isinstance(reply, bytes) else json.dumps(reply).encode(), 1.0, 2.0)


def changed(path: str, value: Any) -> dict[str, Any]:
    """REPLY with one field set, or without it (value ...)."""
    reply = copy.deepcopy(REPLY)
    *parents, last = path.split(".")
    at = reply
    for parent in parents:
        at = at[parent]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return reply


def test_a_plain_request_has_nothing_but_what_it_needs() -> None:
    assert json.loads(request_body(Call("r1", (1, 2, 3), 4))) == {
        "rid": "r1",
        "input_ids": [1, 2, 3],
        "sampling_params": {"max_new_tokens": 4, "temperature": 0, "ignore_eos": True},
    }


def test_a_request_for_a_rank_names_it() -> None:
    assert json.loads(request_body(Call("r1", (1,), 1), 1))["routed_dp_rank"] == 1
    assert json.loads(request_body(Call("r1", (1,), 1), 0))["routed_dp_rank"] == 0


def test_prefill_only_asks_for_no_tokens() -> None:
    assert json.loads(request_body(Call("r1", (1,), 0)))["sampling_params"]["max_new_tokens"] == 0


def test_a_full_request() -> None:
    call = Call("r1", (1, 2), 2, namespace="a", logprob_start=0, abort_after_s=1.0, forced_outputs=(7, 8))
    assert json.loads(request_body(call)) == {
        "rid": "r1",
        "input_ids": [1, 2],
        "sampling_params": {
            "max_new_tokens": 2,
            "temperature": 0,
            "ignore_eos": True,
            "custom_params": {"forced_output_ids": [7, 8]},
        },
        "extra_key": "a",
        "return_logprob": True,
        "logprob_start_len": 0,
    }


def test_the_empty_namespace_is_not_sent() -> None:
    assert "extra_key" not in json.loads(request_body(Call("r1", (1,), 1, namespace="")))


def test_the_reply_of_the_reference() -> None:
    assert read(REPLY) == Answer("ok", 1.0, 2.0, (5, 6, 7, 8, 9, 10, 11, 12), 65, 64, TierSplit(16, 48))


def test_null_details_are_no_split() -> None:
    answer = read(changed("meta_info.cached_tokens_details", None))
    assert answer.status == "ok"
    assert answer.split is None


def test_storage_is_part_of_the_split() -> None:
    details = {"device": 1, "host": 2, "storage": 3, "storage_backend": "HiCacheFile"}
    assert read(changed("meta_info.cached_tokens_details", details)).split == TierSplit(1, 2, 3)


def test_an_abort_that_never_started_has_no_counts() -> None:
    meta = {"id": "r1", "finish_reason": {"type": "abort", "message": "aborted"}, "completion_tokens": 0}
    answer = read({"text": "", "output_ids": [], "meta_info": meta})
    assert answer == Answer("aborted", 1.0, 2.0)


def test_an_abort_half_way_has_its_counts() -> None:
    reply = changed("meta_info.finish_reason", {"type": "abort", "message": "m", "status_code": None})
    answer = read(reply)
    assert (answer.status, answer.cached_tokens, len(answer.output_ids)) == ("aborted", 64, 8)


@pytest.mark.parametrize(
    "field",
    ["output_ids", "meta_info.prompt_tokens", "meta_info.cached_tokens", "meta_info.cached_tokens_details"],
)
def test_a_finished_request_must_have_its_counts(field: str) -> None:
    with pytest.raises(msgspec.DecodeError, match=f"missing required field `{field}`"):
        read(changed(field, ...))


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("meta_info", ..., "meta_info"),
        ("meta_info", None, "meta_info"),
        ("meta_info.finish_reason", None, "finish_reason"),
        ("meta_info.finish_reason", {"type": "whatever"}, "finish_reason.type"),
        ("output_ids", ["a"], "output_ids"),
        ("output_ids", 7, "output_ids"),
        ("meta_info.cached_tokens", "64", "cached_tokens"),
        ("meta_info.cached_tokens", 64.5, "cached_tokens"),
        ("meta_info.cached_tokens_details", {}, "device"),
        ("meta_info.cached_tokens_details", {"device": 16}, "host"),
        ("meta_info.cached_tokens_details", [16, 48], "cached_tokens_details"),
        ("meta_info.cached_tokens_details", {"device": 16, "host": None}, "cached_tokens_details.host"),
    ],
)
def test_another_shape_is_refused_and_the_place_named(path: str, value: Any, named: str) -> None:
    with pytest.raises(msgspec.DecodeError, match=named):
        read(changed(path, value))


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"not json", b'{"meta_info"', b"\xff\xfe"])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        read(body)


def test_a_failed_answer_is_not_usable() -> None:
    with pytest.raises(RequestFailed, match="timeout: no reply"):
        Answer("failed", 0.0, 0.0, failure="timeout", error="no reply").usable()
    answer = read(REPLY)
    assert answer.usable() is answer

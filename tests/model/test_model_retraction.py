"""Requests that are retracted because decode runs out of room (reference 2.1, 6.3)."""

from __future__ import annotations

import pytest

from tierfuzz.model.config import EngineConfig
from tierfuzz.model.engine import Engine
from tierfuzz.model.request import Reply, Request
from tierfuzz.model.rules import PROFILES, rules_for
from tierfuzz.prompts import Piece, tokens_of

PROMPT, OUTPUTS = 30, 40
MOST_TICKS = 1000


def request(name: str) -> Request:
    """A prompt of its own with a long answer."""
    return Request(name, tokens_of((Piece(name, 0, PROMPT),)), OUTPUTS)


def served(profile: str, reserve: int, names: str) -> tuple[dict[str, Reply], Engine]:
    """The answers to requests that arrive together; a pool of 10 pages has no room for two of them."""
    config = EngineConfig(10, 100, 400, chunked_prefill=0, output_reserve=reserve)
    engine = Engine(config, rules_for(profile))
    for name in names:
        engine.submit(request(name))
    replies: dict[str, Reply] = {}
    for _ in range(MOST_TICKS):
        replies |= {reply.rid: reply for reply in engine.tick().replies}
        if engine.idle:
            return replies, engine
    raise AssertionError("the model did not come to rest")


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_a_retracted_request_is_answered_as_if_nothing_had_happened(profile: str) -> None:
    replies, engine = served(profile, 0, "ab")
    assert engine.counters["retractions"] == sum(reply.retractions for reply in replies.values()) > 0
    for name, reply in replies.items():
        alone, _ = served(profile, 0, name)
        assert reply.output_ids == alone[name].output_ids
        assert (reply.prompt_tokens, reply.finish) == (PROMPT, "length")


def test_what_was_cached_is_counted_at_the_first_admission_only() -> None:
    replies, _ = served("default", 0, "ab")
    (retracted,) = (reply for reply in replies.values() if reply.retractions)
    assert retracted.cached_tokens == 0  # though its own prompt was in the tree when it came back


def test_nobody_is_retracted_where_admission_keeps_room_for_the_outputs() -> None:
    replies, engine = served("default", 4096, "ab")
    assert engine.counters["retractions"] == 0
    assert [reply.retractions for reply in replies.values()] == [0, 0]


def test_a_retracted_request_that_is_aborted_while_it_waits_says_what_it_had() -> None:
    config = EngineConfig(10, 100, 400, chunked_prefill=0, output_reserve=0)
    engine = Engine(config, rules_for("default"))
    engine.submit(request("a"))
    engine.submit(request("b"))
    while not engine.waiting or not engine.counters["retractions"]:
        engine.tick()
    name = engine.waiting[0].request.rid
    engine.abort(name)
    (reply,) = engine.tick().replies
    assert (reply.rid, reply.finish, reply.prompt_tokens) == (name, "abort", PROMPT)
    assert reply.output_ids

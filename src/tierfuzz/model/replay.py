"""Runs the operations of a recording through the step model, one after another, settled."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tierfuzz.events import KvEvent
from tierfuzz.model.config import EngineConfig, StorageConfig
from tierfuzz.model.engine import Engine
from tierfuzz.model.pools import EngineCrash
from tierfuzz.model.request import Request
from tierfuzz.model.rules import Rules, rules_for
from tierfuzz.observation import TierSplit
from tierfuzz.prompts import tokens_of
from tierfuzz.recording import Header, OpRecord, Recording

MOST_TICKS = 20_000  # far above any recorded request; a rule that is broken may never end


@dataclass(frozen=True)
class OpResult:
    """One operation: what the reply accounted for (None for a flush) and the batches it published."""

    cached_tokens: int | None
    split: TierSplit | None
    batches: list[list[KvEvent]]


def engine_config(header: Header) -> EngineConfig:
    """The sizes of the recorded worker."""
    storage = None
    if header.storage_backend:
        extra = json.loads(header.storage_extra_config or "{}")
        storage = StorageConfig(extra.get("prefetch_threshold", StorageConfig.threshold))
    return EngineConfig(
        page_size=header.page_size,
        device_tokens=header.device_tokens,
        host_tokens=header.host_tokens,
        policy=header.write_policy,
        chunked_prefill=header.chunked_prefill_size,
        storage=storage,
    )


def recorded_rules(header: Header, profile: str | None = None) -> Rules:
    """The profile of the recorded version, or the one that is asked for."""
    rules = rules_for(profile or f"sglang-{header.version}")
    return rules.but(coalesce=header.tree_core) if header.tree_core and rules.unified else rules


def request_of(op: OpRecord, rid: str) -> Request:
    """The request of a record, with its recorded outputs."""
    return Request(
        rid=rid,
        tokens=tokens_of(op.prompt),
        max_new=op.max_new_tokens,
        namespace=op.extra_key or "",
        logprob_start=op.logprob_start_len,
        forced_outputs=op.output_ids or (),
    )


def replay(recording: Recording, rules: Rules) -> list[OpResult]:
    """Predict every operation of a sequential recording."""
    engine = Engine(engine_config(recording.header), rules)
    return [_run(engine, op, str(number)) for number, op in enumerate(recording.ops)]


def _run(engine: Engine, op: OpRecord, rid: str) -> OpResult:
    if op.op == "flush":
        engine.flush()
    else:
        engine.submit(request_of(op, rid))
    batches: list[list[KvEvent]] = []
    cached, split = None, None
    for _ in range(MOST_TICKS):
        if engine.idle:
            break
        result = engine.tick()
        batches += result.batches
        for reply in result.replies:
            cached, split = reply.cached_tokens, reply.split
    else:
        raise EngineCrash(f"operation {rid} does not end: the rules allow no progress")
    return OpResult(cached, split, batches)

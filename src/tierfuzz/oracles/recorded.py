"""Recordings before the judge: requests alone and in bursts, with every event where it belongs."""

from __future__ import annotations

from typing import Any

import msgspec

from tierfuzz.events import Batch
from tierfuzz.observation import Observation
from tierfuzz.oracles.grouping import Group, groups_of
from tierfuzz.oracles.judge import Judge
from tierfuzz.program import FleetConfig, Generate
from tierfuzz.prompts import tokens_of
from tierfuzz.recording import Header, OpRecord, Recording
from tierfuzz.traits import Traits

UNIFIED_SINCE = (0, 5, 23)
DEFAULT_PREFETCH_THRESHOLD = 256


def fleet_of(header: Header) -> FleetConfig:
    """The recorded worker as a fleet of one."""
    return FleetConfig(
        policy=header.write_policy,
        workers=1,
        page_size=header.page_size,
        device_tokens=header.device_tokens,
        host_ratio=(header.host_tokens - header.page_size) / header.device_tokens,
        chunked_prefill=header.chunked_prefill_size,
        storage_threshold=_storage_threshold(header),
    )


def _storage_threshold(header: Header) -> int:
    """Tokens worth a prefetch, 0 without storage; engines take 256 unless told otherwise (reference 1)."""
    if header.storage_backend is None:
        return 0
    config = msgspec.json.decode(header.storage_extra_config or "{}", type=dict[str, Any])
    return int(config.get("prefetch_threshold", DEFAULT_PREFETCH_THRESHOLD))


def traits_of(header: Header) -> Traits:
    """What the judgement has to know of the recorded version."""
    version = tuple(int(part) for part in header.version.split(".")[:3])
    unified = version >= UNIFIED_SINCE
    return Traits(seeded_namespaces=False, removal_first=not unified, silent_revival=not unified)


def judge_recording(recording: Recording) -> Judge:
    """Feed a whole recording to a judge, settled between groups."""
    judge = Judge(fleet_of(recording.header), 0, traits_of(recording.header))
    for number, group in enumerate(groups_of(recording)):
        _judge_group(judge, number, group)
    return judge


def _judge_group(judge: Judge, number: int, group: Group) -> None:
    first = group.ops[0][1]
    made = [(op, _generate(i, op), tokens_of(op.prompt)) for i, op in group.ops if op.op == "generate"]
    if first.op == "flush":
        judge.flushed(f"op{group.ops[0][0]}")
    elif len(made) == 1:
        judge.expect(made[0][1], made[0][2], at_rest=True)
    else:
        judge.expect_together([(generate, tokens) for _, generate, tokens in made], at_rest=True)
    for event in group.events:
        judge.batch(Batch(number, 0.0, 0, (event,)))
    for op, generate, tokens in made:
        judge.replied(generate, _seen(op, generate, tokens))
    judge.rested()


def _generate(number: int, op: OpRecord) -> Generate:
    return Generate(
        f"op{number}",
        0,
        op.prompt,
        op.max_new_tokens,
        "filler" if op.note == "filler" else "repeat",
        op.extra_key,
        op.logprob_start_len,
    )


def _seen(op: OpRecord, generate: Generate, tokens: tuple[int, ...]) -> Observation:
    return Observation(
        operation=generate.id,
        worker=0,
        namespace=op.extra_key,
        prompt=tokens,
        requested_outputs=op.max_new_tokens,
        status="aborted" if op.finish == "abort" else "ok",
        started=op.t,
        ended=op.t + op.ms / 1000,
        output_ids=op.output_ids or (),
        prompt_tokens=op.prompt_tokens,
        cached_tokens=op.cached_tokens,
        split=op.cached_tokens_details,
        logprob_start=op.logprob_start_len,
    )

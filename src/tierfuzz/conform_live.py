"""Conformance of a live worker: the operations of a recording over HTTP, its events over ZMQ."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from tierfuzz.errors import EnvironmentFailure
from tierfuzz.events import KvEvent
from tierfuzz.fleet import Fleet, Worker
from tierfuzz.model.replay import OpResult
from tierfuzz.program import FleetConfig
from tierfuzz.prompts import tokens_of
from tierfuzz.recording import Header, OpRecord, Recording
from tierfuzz.translation import Translation
from tierfuzz.worker.http import Call

FLUSH_BOUND_S = 10.0
STEP = 50  # operations between two lines of progress
Say = Callable[[str], None]


def recorded_fleet(header: Header, profile: str | None, engine: str = "sim") -> FleetConfig:
    """One worker with the sizes of the recorded one; of a real engine also its version and tree core."""
    real = engine != "sim"
    ratio = (header.host_tokens - header.page_size) / header.device_tokens
    extra: list[str] = []
    if header.storage_backend:
        extra += ["--hicache-storage-backend", "file", "--hicache-storage-prefetch-policy", "wait_complete"]
        if header.storage_extra_config:
            extra += ["--hicache-storage-backend-extra-config", header.storage_extra_config]
    if header.tree_core and not real:
        extra += ["--sim-rule", f"coalesce={header.tree_core}"]
    return FleetConfig(
        engine=engine,
        policy=header.write_policy,
        workers=1,
        page_size=header.page_size,
        device_tokens=header.device_tokens,
        host_ratio=ratio,
        chunked_prefill=header.chunked_prefill_size,
        profile="default" if real else profile or f"sglang-{header.version}",
        extra_args=tuple(extra),
        engine_version=header.version if real else "",
        tree_core=(header.tree_core or "") if real else "",
    )


def worker_predicts(
    recording: Recording,
    profile: str | None,
    engine: str = "sim",
    version: str = "",
    say: Say | None = None,
) -> list[OpResult]:
    """What a live worker answers and publishes for every operation, settled after each.

    A real engine cannot be told what to answer: its blocks are translated into the recorded ones by their
    place in prompt and answer. `version`: another one than was recorded.
    """
    config = recorded_fleet(recording.header, profile, engine)
    if version:
        config = msgspec.structs.replace(config, engine_version=version)
    translation = Translation(recording.header.page_size)
    results: list[OpResult] = []
    with tempfile.TemporaryDirectory(prefix="tierfuzz-") as logs, Fleet(config, Path(logs)) as fleet:
        worker = fleet.workers[0]
        worker.subscriber.drain()
        for number, op in enumerate(recording.ops):
            results.append(_run(fleet, worker, op, str(number), translation))
            if say is not None and (number + 1) % STEP == 0:
                say(f"{recording.path.name}: {number + 1} of {len(recording.ops)} operations")
    return results


def _run(fleet: Fleet, worker: Worker, op: OpRecord, rid: str, translation: Translation) -> OpResult:
    cached, split = None, None
    if op.op == "flush":
        if not worker.client.flush(FLUSH_BOUND_S):
            raise EnvironmentFailure(f"operation {rid}: the worker refused a flush for {FLUSH_BOUND_S} s")
    else:
        answer = worker.client.generate(_call(op, rid, forced=fleet.config.engine == "sim")).usable()
        cached, split = answer.cached_tokens, answer.split
        translation.learn(tokens_of(op.prompt), answer.output_ids, op.output_ids or ())
    rest = fleet.settle(worker)
    if not rest.at_rest:
        raise EnvironmentFailure(f"operation {rid}: the worker did not come to rest: {rest.reason}")
    batches: list[list[KvEvent]] = [
        [translation.event(event) for event in batch.events] for batch in worker.subscriber.drain()
    ]
    return OpResult(cached, split, batches)


def _call(op: OpRecord, rid: str, forced: bool) -> Call:
    return Call(
        rid=f"op-{rid}",
        tokens=tokens_of(op.prompt),
        outputs=op.max_new_tokens,
        namespace=op.extra_key,
        logprob_start=op.logprob_start_len,
        forced_outputs=(op.output_ids or ()) if forced else None,
    )

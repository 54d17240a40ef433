"""Conformance of a live simulated worker: the operations of a recording over HTTP, its events over ZMQ."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tierfuzz.errors import EnvironmentFailure
from tierfuzz.events import KvEvent
from tierfuzz.fleet import Fleet, Worker
from tierfuzz.model.replay import OpResult
from tierfuzz.program import FleetConfig
from tierfuzz.prompts import tokens_of
from tierfuzz.recording import Header, OpRecord, Recording
from tierfuzz.worker.http import Call

FLUSH_BOUND_S = 10.0


def recorded_fleet(header: Header, profile: str | None) -> FleetConfig:
    """One simulated worker with the sizes of the recorded one."""
    ratio = (header.host_tokens - header.page_size) / header.device_tokens
    extra: list[str] = []
    if header.storage_backend:
        extra += ["--hicache-storage-backend", "file", "--hicache-storage-prefetch-policy", "wait_complete"]
        if header.storage_extra_config:
            extra += ["--hicache-storage-backend-extra-config", header.storage_extra_config]
    if header.tree_core:
        extra += ["--sim-rule", f"coalesce={header.tree_core}"]
    return FleetConfig(
        policy=header.write_policy,
        workers=1,
        page_size=header.page_size,
        device_tokens=header.device_tokens,
        host_ratio=ratio,
        chunked_prefill=header.chunked_prefill_size,
        profile=profile or f"sglang-{header.version}",
        extra_args=tuple(extra),
    )


def worker_predicts(recording: Recording, profile: str | None) -> list[OpResult]:
    """What a live worker answers and publishes for every operation, settled after each."""
    config = recorded_fleet(recording.header, profile)
    with tempfile.TemporaryDirectory(prefix="tierfuzz-") as logs, Fleet(config, Path(logs)) as fleet:
        worker = fleet.workers[0]
        worker.subscriber.drain()
        return [_run(fleet, worker, op, str(number)) for number, op in enumerate(recording.ops)]


def _run(fleet: Fleet, worker: Worker, op: OpRecord, rid: str) -> OpResult:
    cached, split = None, None
    if op.op == "flush":
        if not worker.client.flush(FLUSH_BOUND_S):
            raise EnvironmentFailure(f"operation {rid}: the worker refused a flush for {FLUSH_BOUND_S} s")
    else:
        answer = worker.client.generate(_call(op, rid)).usable()
        cached, split = answer.cached_tokens, answer.split
    rest = fleet.settle(worker)
    if not rest.at_rest:
        raise EnvironmentFailure(f"operation {rid}: the worker did not come to rest: {rest.reason}")
    batches: list[list[KvEvent]] = [list(batch.events) for batch in worker.subscriber.drain()]
    return OpResult(cached, split, batches)


def _call(op: OpRecord, rid: str) -> Call:
    return Call(
        rid=f"op-{rid}",
        tokens=tokens_of(op.prompt),
        outputs=op.max_new_tokens,
        namespace=op.extra_key,
        logprob_start=op.logprob_start_len,
        forced_outputs=op.output_ids or (),
    )

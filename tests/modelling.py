"""What a client and a monitor see of a modelled worker, for tests that judge one without processes."""

from __future__ import annotations

from tierfuzz.model.engine import Engine
from tierfuzz.model.request import Reply
from tierfuzz.observation import Observation
from tierfuzz.program import Generate


def observation_of(
    request: Generate, tokens: tuple[int, ...], reply: Reply, alone: bool = True
) -> Observation:
    """What a client sees of a reply."""
    return Observation(
        operation=request.id,
        worker=request.worker,
        namespace=request.namespace,
        prompt=tokens,
        requested_outputs=request.outputs,
        status="aborted" if reply.finish == "abort" else "ok",
        started=0.0,
        ended=0.0,
        output_ids=tuple(reply.output_ids),
        prompt_tokens=reply.prompt_tokens,
        cached_tokens=reply.cached_tokens,
        split=reply.split,
        logprob_start=request.logprob_start,
        alone=alone,
        retractions=reply.retractions,
    )


def levels(engine: Engine) -> dict[str, float]:
    """Levels as a worker reports them."""
    gauges = engine.gauges()
    return {
        "sglang:num_running_reqs": gauges.running,
        "sglang:num_queue_reqs": gauges.waiting,
        "sglang:kv_available_tokens": gauges.device_free,
        "sglang:kv_evictable_tokens": gauges.device_evictable,
        "sglang:hicache_host_used_tokens": gauges.host_used,
    }

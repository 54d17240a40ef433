"""/metrics: the engine's names, as Prometheus text (reference 2.5). Gauges are always fresh here."""

from __future__ import annotations

from collections.abc import Iterable

from tierfuzz.model.request import Gauges
from tierfuzz.sim.state import STORAGE_CLASS, SimWorker

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Sample = tuple[str, dict[str, str], float]  # suffix of the name, own labels, value


def metrics_text(worker: SimWorker) -> str:
    """All metrics of one worker. Token levels in tokens, counters since the process started."""
    name = worker.options.served_model_name
    scheduler = {
        "engine_type": "unified",
        "model_name": name,
        "moe_ep_rank": "0",
        "pp_rank": "0",
        "tp_rank": "0",
    }
    cache = {"cache_type": "UnifiedRadixCache" if worker.engine.rules.unified else "HiRadixCache"}
    lines: list[str] = []
    levels = [list(_gauges(rank.engine.gauges())) for rank in worker.ranks]
    for ranks in zip(*levels, strict=True):
        metric, text, _ = ranks[0]
        lines += _family(metric, "gauge", text, scheduler, _of_ranks([value for *_, value in ranks]))
    for metric, kind, text, samples in _cache_counters(worker):
        lines += _family(metric, kind, text, cache, samples)
    model = {"engine_type": "unified", "model_name": name}
    for metric, text, samples in _token_counters(worker):
        lines += _family(metric, "counter", text, model, samples)
    return "\n".join(lines) + "\n"


def _of_ranks(values: list[float]) -> list[Sample]:
    """One sample a rank; a lone one has no label for it."""
    if len(values) == 1:
        return [("", {}, values[0])]
    return [("", {"dp_rank": str(rank)}, value) for rank, value in enumerate(values)]


def _gauges(levels: Gauges) -> Iterable[tuple[str, str, float]]:
    used = levels.device_total - levels.device_free - levels.device_evictable
    usage = used / levels.device_total
    yield "num_running_reqs", "Requests that run.", levels.running
    yield "num_queue_reqs", "Requests that wait.", levels.waiting
    yield "num_used_tokens", "Device tokens in use.", used
    yield "token_usage", "Share of the device pool in use.", usage
    yield "full_token_usage", "Share of the device pool in use, full attention.", usage
    yield "kv_available_tokens", "Free device tokens.", levels.device_free
    yield "kv_evictable_tokens", "Cached device tokens that nothing pins.", levels.device_evictable
    yield "kv_used_tokens", "Device tokens in use.", used
    yield "hicache_host_used_tokens", "Host tokens in use.", levels.host_used
    yield "hicache_host_total_tokens", "Host pool.", levels.host_total


def _cache_counters(worker: SimWorker) -> Iterable[tuple[str, str, str, list[Sample]]]:
    count = worker.counters
    yield (
        "evicted_tokens_total",
        "counter",
        "Tokens evicted from device.",
        [("", {}, count["evicted_tokens"])],
    )
    yield (
        "load_back_tokens_total",
        "counter",
        "Tokens loaded to device.",
        [("", {}, count["load_back_tokens"])],
    )
    for name, calls in (("eviction", "device_evictions"), ("load_back", "load_backs")):
        samples: list[Sample] = [("_sum", {}, 0.0), ("_count", {}, count[calls])]
        yield (
            f"{name}_duration_seconds",
            "histogram",
            f"Calls of {name}; their time is not modelled.",
            samples,
        )


def _token_counters(worker: SimWorker) -> Iterable[tuple[str, str, list[Sample]]]:
    count = worker.counters
    tiers = {"device": "device", "host": "host", "storage": f"storage_{STORAGE_CLASS}"}
    cached = {source: count[f"cached_{tier}_tokens"] for tier, source in tiers.items()}
    found: list[Sample] = [("", {"cache_source": source}, value) for source, value in cached.items() if value]
    yield "cached_tokens_total", "Cached prompt tokens by source.", found
    modes = {
        "prefill_compute": count["prefill_tokens"],
        "prefill_cache": sum(cached.values()),
        "decode": sum(rank.scheduler.decoded_tokens for rank in worker.ranks),
    }
    yield (
        "realtime_tokens_total",
        "Tokens by what was done.",
        [("", {"mode": m}, v) for m, v in modes.items()],
    )
    if worker.storage_backend is not None:
        stored = len(worker.engine.cache.storage) * worker.engine.config.page_size
        yield "prefetched_tokens_total", "Tokens from storage.", [("", {}, count["prefetched_tokens"])]
        yield "backuped_tokens_total", "Tokens in storage.", [("", {}, stored)]


def _family(name: str, kind: str, text: str, labels: dict[str, str], samples: list[Sample]) -> Iterable[str]:
    yield f"# HELP sglang:{name} {text}"
    yield f"# TYPE sglang:{name} {kind}"
    for suffix, own, value in samples:
        pairs = ",".join(f'{key}="{_escaped(label)}"' for key, label in sorted((own | labels).items()))
        yield f"sglang:{name}{suffix}{{{pairs}}} {float(value)}"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

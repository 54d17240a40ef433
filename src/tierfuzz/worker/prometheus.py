"""Prometheus text to plain numbers (reference 2.5)."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

# Labels that tell apart what must not be summed up unseen; the rest name the process.
_TELLING = ("cache_source", "mode", "pool", "reason")
_TOTAL = ("cache_source", "total")  # a sum that the engine adds beside its parts


def read_metrics(text: str, rank: int | None = None) -> dict[str, float]:
    """Every sample by name, summed over labels, and once more by each telling label.

    `sglang:cached_tokens_total` is a sum; `sglang:cached_tokens_total{cache_source=host}` one part. Buckets
    of histograms are left out, their _sum and _count stay. ValueError for what is not Prometheus text.
    """
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            other = rank is not None and sample.labels.get("dp_rank", str(rank)) != str(rank)
            if other or sample.name.endswith("_bucket"):
                continue
            for key in _keys(sample.name, sample.labels):
                found[key] = found.get(key, 0.0) + float(sample.value)
    return found


def _keys(name: str, labels: dict[str, str]) -> list[str]:
    keys = [f"{name}{{{label}={labels[label]}}}" for label in _TELLING if label in labels]
    return keys if labels.get(_TOTAL[0]) == _TOTAL[1] else [name, *keys]

"""Whether a worker took what it was asked for: /server_info against the options (reference 1, 2)."""

from __future__ import annotations

from typing import Any

from tierfuzz.engines.sglang.options import SglangOptions


def differences(asked: SglangOptions, info: dict[str, Any], version: str = "") -> list[str]:
    """One text a field that is not what was asked for; [] when all of them are. `version` "": any.

    Fields that this version does not show are not judged; capacities are compared by the fleet.
    """
    expected: dict[str, object] = {
        "enable_hierarchical_cache": True,
        "radix_eviction_policy": asked.eviction,
        "disable_overlap_schedule": not asked.overlap,
        "disable_cuda_graph": not asked.cuda_graphs,
        "hicache_storage_backend": "file" if asked.storage_threshold else None,
        "disable_radix_cache": False,
    }
    if asked.chunked_prefill > 0:
        expected["chunked_prefill_size"] = asked.chunked_prefill
    texts = [
        f"{key} is {info[key]!r}, asked was {value!r}"
        for key, value in expected.items()
        if key in info and info[key] != value and not _overridden(key, asked)
    ]
    if version and info.get("version") != version:
        texts.append(f"version is {info.get('version')!r}, asked was {version!r}")
    return [*texts, *_event_differences(asked.page_size, info)]


def _overridden(key: str, asked: SglangOptions) -> bool:
    """Extra arguments name this option: whoever gave them knows."""
    return any(f"--{key.replace('_', '-')}" in word for word in asked.extra)


def _event_differences(page_size: int, info: dict[str, Any]) -> list[str]:
    events = info.get("kv_events")
    if not isinstance(events, dict):
        return ["kv_events is missing: nothing will be published"]
    if events.get("block_size") != page_size:
        return [f"events have blocks of {events.get('block_size')!r} tokens, pages have {page_size}"]
    return []

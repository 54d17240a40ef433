"""From parsed flags to SimOptions: what is refused, and why."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from tierfuzz.errors import UsageError
from tierfuzz.sim.config import LOOPBACK_HOSTS, PrefetchPolicy, SimOptions, parse_event_config

# Flags that a real engine needs and that mean nothing here: name, default, why.
IGNORED: tuple[tuple[str, str | None, str], ...] = (
    ("--model-path", "tiny", "no weights are read"),
    ("--tokenizer-path", None, "no tokenizer is read"),
    ("--load-format", "auto", "no weights are read"),
    ("--dtype", "auto", "no weights are read"),
    ("--device", None, "there is no device"),
    ("--mem-fraction-static", None, "the pool is --max-total-tokens"),
    ("--attention-backend", None, "there is no attention"),
    ("--sampling-backend", None, "there is no sampling"),
    ("--grammar-backend", None, "there are no grammars"),
    ("--hicache-io-backend", "kernel", "copies are modelled"),
    ("--hicache-mem-layout", "page_first", "copies are modelled"),
    ("--log-level", "info", "there is one level"),
)
IGNORED_SWITCHES = ("--skip-server-warmup", "--disable-cuda-graph", "--trust-remote-code")


def resolve(given: dict[str, Any]) -> SimOptions:
    """Check parsed flags against each other; UsageError says what was given, expected, and what to do."""
    _check(given)
    page_size = given["page_size"]
    events = given["kv_events_config"]
    options = SimOptions(
        host=given["host"],
        port=given["port"],
        page_size=page_size,
        device_tokens=given["max_total_tokens"] // page_size * page_size,
        hicache_ratio=given["hicache_ratio"],
        hicache_size_gb=given["hicache_size"],
        policy=given["hicache_write_policy"],
        chunked_prefill=given["chunked_prefill_size"],
        max_running=given["max_running_requests"],
        decode_log_interval=given["decode_log_interval"],
        overlap=not given["disable_overlap_schedule"],
        events=parse_event_config(events) if events is not None else None,
        events_text=events,
        storage_backend=given["hicache_storage_backend"],
        storage_policy=cast(PrefetchPolicy, given["storage_policy"]),
        storage_extra=given["storage_extra"],
        cache_report=given["enable_cache_report"],
        metrics=given["enable_metrics"],
        admin_api_key=given["admin_api_key"],
        served_model_name=given["served_model_name"] or given["model_path"],
        profile=given["sim_profile"],
        changed_rules=tuple(_rule(text) for text in given["sim_rule"]),
        plants=tuple(given["sim_plant"]),
        ack_delay_ms=given["sim_ack_delay_ms"],
        step_delay_ms=given["sim_step_delay_ms"],
        publish_delay_ms=given["sim_publish_delay_ms"],
        output_reserve=given["sim_output_reserve"],
        ranks=given["dp_size"],
        seed=given["sim_seed"],
        ignored=_ignored_values(given),
    )
    options.engine_config()  # sizes and rules are refused here, not after the sockets are open
    options.rules()
    return options


def _rule(text: str) -> tuple[str, bool | int | str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--sim-rule {text!r}: expected NAME=VALUE, with true, false, a number or a word")
    try:
        return name, msgspec.json.decode(value, type=bool | int)
    except msgspec.DecodeError:
        return name, value


def _ignored_values(given: dict[str, Any]) -> tuple[tuple[str, object], ...]:
    names = [name for name, *_ in IGNORED] + list(IGNORED_SWITCHES)
    keys = [name.removeprefix("--").replace("-", "_") for name in names]
    return tuple((key, given[key]) for key in keys)


def _check(given: dict[str, Any]) -> None:
    host, tokens, page = given["host"], given["max_total_tokens"], given["page_size"]
    if host not in LOOPBACK_HOSTS:
        raise UsageError(
            f"--host {host}: expected one of {', '.join(LOOPBACK_HOSTS)}; it serves this machine only"
        )
    if not given["hierarchical"]:
        raise UsageError(
            "no host tier was asked for: pass --enable-hierarchical-cache (nothing else is modelled)"
        )
    if tokens < page:
        raise UsageError(f"--max-total-tokens {tokens}: expected at least one page of {page}")
    check_storage(given["hicache_storage_backend"], given["storage_policy"])
    if given["dp_size"] > 1 and given["hicache_storage_backend"]:
        raise UsageError(
            f"--dp-size {given['dp_size']} with storage: expected one rank; leave one of them out"
        )


def check_storage(backend: str | None, policy: str) -> None:
    """Refuse a storage backend or prefetch policy that is not modelled."""
    if backend not in (None, "file"):
        raise UsageError(f"storage backend {backend!r}: the simulated worker knows 'file' only")
    if policy not in ("wait_complete", "timeout"):
        raise UsageError(
            f"storage prefetch policy {policy!r}: expected wait_complete or timeout (reads end before it); "
            "best_effort ends reads at a moment that no client can tell"
        )

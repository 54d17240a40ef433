"""Flags: what they resolve to, and what is refused with which reason."""

from __future__ import annotations

import click
import pytest

from tierfuzz.errors import UsageError
from tierfuzz.sim.config import SimOptions
from tierfuzz.sim.options import command
from tierfuzz.sim.resolve import resolve

HOST = "--enable-hierarchical-cache"


def options(*flags: str) -> SimOptions:
    """Parsed and resolved flags."""
    return resolve(command.make_context("sim", [HOST, *flags]).params)


@pytest.mark.parametrize(
    ("flags", "device", "host"),
    [
        ("--page-size=16 --max-total-tokens=1024 --hicache-ratio=2", 1024, 2064),  # recordings: one page more
        ("--page-size=64 --max-total-tokens=8192 --hicache-ratio=4", 8192, 32832),
        ("--page-size=1 --max-total-tokens=512 --hicache-ratio=2", 512, 1025),
        ("--page-size=16 --max-total-tokens=1024 --hicache-ratio=0.5", 1024, 528),
        ("--page-size=16 --max-total-tokens=1030 --hicache-ratio=1", 1024, 1040),  # D is cut to whole pages
        ("--page-size=16 --max-total-tokens=1024 --hicache-size=1", 1024, 976576),  # GB win over the ratio
    ],
)
def test_pool_sizes_follow_the_engines_formula(flags: str, device: int, host: int) -> None:
    config = options(*flags.split()).engine_config()
    assert (config.device_tokens, config.host_tokens) == (device, host)


def test_every_flag_reaches_the_options() -> None:
    found = options(
        "--hicache-write-policy=write_back",
        "--page-size=4",
        "--max-total-tokens=512",
        "--chunked-prefill-size=128",
        "--max-running-requests=7",
        "--decode-log-interval=3",
        "--disable-overlap-schedule",
        "--enable-cache-report",
        "--served-model-name=m",
        "--sim-profile=sglang-0.5.17",
        "--sim-rule=exact_fit_evicts=false",
        "--sim-plant=no-backup",
        "--sim-plant=batch-lost",
        "--sim-ack-delay-ms=5",
        "--sim-step-delay-ms=1.5",
        "--sim-seed=9",
        "--hicache-storage-backend=file",
        '--hicache-storage-backend-extra-config={"prefetch_threshold":32}',
    )
    config, rules = found.engine_config(), found.rules()
    assert (config.policy, config.page_size, config.chunked_prefill) == ("write_back", 4, 128)
    assert (config.max_running, config.decode_log_interval) == (7, 3)
    assert config.storage is not None
    assert config.storage.threshold == 32
    assert rules.silent_revival
    assert not rules.exact_fit_evicts
    assert rules.last_output_not_decoded  # without overlap the last output's token is never stored
    assert found.plants == ("no-backup", "batch-lost")
    assert (found.ack_delay_ms, found.step_delay_ms, found.seed) == (5, 1.5, 9)
    assert (found.cache_report, found.served_model_name) == (True, "m")


def test_flags_that_mean_nothing_here_are_taken() -> None:
    flags = "--model-path=/m --load-format=dummy --attention-backend=triton --mem-fraction-static=0.08"
    found = options(
        *flags.split(), "--skip-server-warmup", "--disable-cuda-graph", "--hicache-io-backend=direct"
    )
    assert dict(found.ignored)["load_format"] == "dummy"
    assert found.served_model_name == "/m"


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--host=0.0.0.0"], "127.0.0.1"),
        (["--page-size=16", "--max-total-tokens=8"], "at least one page of 16"),
        (["--page-size=16", "--chunked-prefill-size=100"], "multiple of the page size 16"),
        (["--sim-profile=sglang-9"], "sglang-0.5.17"),
        (["--sim-rule=no_such_rule=true"], "unknown rule no_such_rule"),
        (["--sim-rule=exact_fit_evicts"], "NAME=VALUE"),
        (["--hicache-storage-backend=mooncake"], "'file' only"),
        (["--hicache-storage-prefetch-policy=best_effort"], "wait_complete or timeout"),
        (["--hicache-storage-backend=file", "--hicache-storage-backend-extra-config={"], "expected JSON"),
        (["--kv-events-config={}"], '"publisher":"zmq"'),
        (['--kv-events-config={"publisher":"null"}'], "B11"),
        (['--kv-events-config={"publisher":"zmq","topics":"x"}'], "topics"),
        (["--kv-events-config=zmq"], "expected the JSON"),
    ],
)
def test_wrong_values_are_refused_with_what_to_do(flags: list[str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason.replace("{", r"\{")):
        options(*flags)


@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        ("--radix-eviction-policy=lfu", "'lru' only"),
        ("--schedule-policy=lpm", "refreshes ages"),
        ("--hicache-write-policy=write_around", "write_through_selective"),
        ("--no-such-flag", "No such option"),
        ("--port=70000", "0<=x<=65535"),
    ],
)
def test_flags_of_other_engines_are_refused_by_name(flag: str, reason: str) -> None:
    with pytest.raises(click.UsageError) as error:
        options(flag)
    assert reason in error.value.format_message()


def test_a_worker_without_a_host_tier_is_refused() -> None:
    with pytest.raises(UsageError, match="--enable-hierarchical-cache"):
        resolve(command.make_context("sim", []).params)

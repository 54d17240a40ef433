"""Preflight: a good worker passes, and each thing that would make a run vacuous is named with its cure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tierfuzz.engines.discovery import Endpoints
from tierfuzz.errors import EnvironmentFailure, ExitCode, Vacuous
from tierfuzz.events import Batch, BlockStored, EventFault
from tierfuzz.observation import TierSplit
from tierfuzz.preflight.checks import checks, refuse_vacuous
from tierfuzz.preflight.machine import machine_checks
from tierfuzz.preflight.seen import Seen
from tierfuzz.worker.calls import Answer

INFO: dict[str, Any] = {
    "version": "0.5.17",
    "enable_hierarchical_cache": True,
    "hicache_write_policy": "write_through",
    "page_size": 16,
    "max_total_num_tokens": 1024,
    "hicache_ratio": 2.0,
    "kv_events": {"block_size": 16, "dp_size": 1},
}
FIRST = Answer("ok", 0.0, 1.0, (5,), 33, 0, None)
SECOND = Answer("ok", 1.0, 2.0, (5,), 33, 32, TierSplit(32, 0))
STORED = Batch(1, 0.0, 0, (BlockStored((11, 12), None, (), 16, "GPU", None),))
GOOD = Seen(
    url="http://w",
    info=INFO,
    healthy=True,
    endpoints=Endpoints("tcp://w:1", "tcp://w:2", "kv"),
    blocks=(11, 12),
    answers=(FIRST, SECOND),
    batches=(STORED,),
    live=1,
    replayed=1,
    idle=True,
    at_rest=True,
)


def info(**changes: Any) -> Seen:
    """The good worker with another /server_info."""
    return replace(GOOD, info={**INFO, **changes})


def test_a_good_worker_passes_every_check() -> None:
    found = checks(GOOD)
    assert all(check.ok for check in found)
    assert len({check.name for check in found}) == len(found) > 12
    refuse_vacuous(GOOD)


FAULT = Batch(2, 0.0, 0, (), (EventFault("missing-medium", "no medium"),))
VACUOUS = [
    ("healthy", replace(GOOD, healthy=False)),
    ("hierarchical cache", info(enable_hierarchical_cache=False)),
    ("write policy", info(hicache_write_policy="other")),
    ("capacities", info(max_total_num_tokens=64)),
    ("capacities", info(max_total_num_tokens=None)),
    ("accounting", replace(GOOD, answers=(FIRST, FIRST))),
    ("accounting", replace(GOOD, answers=(Answer("failed", 0.0, 0.0, failure="http", error="500"),))),
    ("events", replace(GOOD, endpoints=Endpoints())),
    ("block size", info(kv_events={"block_size": 64})),
    ("ranks", info(kv_events={"block_size": 16, "dp_size": 2})),
    ("live events", replace(GOOD, live=0)),
    ("blocks", replace(GOOD, batches=())),
    ("event form", replace(GOOD, batches=(STORED, FAULT))),
    ("replay", replace(GOOD, replayed=None)),
    ("idle probe", replace(GOOD, idle=None)),
    ("rest", replace(GOOD, at_rest=False, unrest="busy")),
]


@pytest.mark.parametrize(("name", "seen"), VACUOUS, ids=[f"{n}-{i}" for i, (n, _) in enumerate(VACUOUS)])
def test_what_would_make_a_run_vacuous_is_named_with_its_cure(name: str, seen: Seen) -> None:
    failed = [check for check in checks(seen) if not check.ok and check.needed]
    assert [check.name for check in failed] == [name]
    assert failed[0].cure
    with pytest.raises(Vacuous, match=name) as raised:
        refuse_vacuous(seen)
    assert raised.value.exit_code is ExitCode.VACUOUS


@pytest.mark.parametrize(
    ("name", "seen"),
    [("host pool", info(hicache_ratio=0.5)), ("page size", info(page_size=4, kv_events={"block_size": 4}))],
)
def test_what_only_proves_less_is_no_reason_to_refuse(name: str, seen: Seen) -> None:
    assert [check.name for check in checks(seen) if not check.ok] == [name]
    refuse_vacuous(seen)


def test_a_worker_that_cannot_be_asked_is_an_environment_failure() -> None:
    seen = Seen("http://w", error="refused")
    (check,) = checks(seen)
    assert (check.name, check.ok) == ("reachable", False)
    with pytest.raises(EnvironmentFailure, match="refused"):
        refuse_vacuous(seen)


def test_this_machine_is_looked_at_without_starting_anything() -> None:
    found = machine_checks()
    assert {"python", "GPU", "memory", "engine sglang-cpu 0.5.17"} <= {check.name for check in found}
    assert all(check.cure for check in found)
    assert not any(check.needed for check in found)

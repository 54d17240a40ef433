"""Orders at length: many streams and recordings of every kind, none of which accuses the reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierfuzz.consumers.registry import make_consumer
from tierfuzz.orderfuzz import fuzz_orders
from tierfuzz.orders.check import check
from tierfuzz.orders.files import load_stream
from tierfuzz.orders.legality import families
from tierfuzz.program import WRITE_POLICIES, WritePolicy

RECORDINGS = Path(__file__).parent.parent / "recordings"
KNOWN = {"sglang-0.5.17": {"duplicate", "silent-revival", "child-first"}, "sglang-0.5.23": {"duplicate"}}


@pytest.mark.parametrize("policy", WRITE_POLICIES)
def test_the_reference_is_right_on_many_orders_of_a_policy(policy: WritePolicy) -> None:
    run = fuzz_orders(lambda: make_consumer("reference"), policy, max_examples=300, seed_=77)
    assert run.streams >= 200
    assert run.wrong == {}
    assert run.follows == {"counts"}


@pytest.mark.parametrize("name", sorted(path.name for path in RECORDINGS.glob("*.jsonl.xz"))[::3])
def test_the_reference_is_right_on_recordings(name: str) -> None:
    stream = load_stream(RECORDINGS / name)
    trial = check(stream, lambda: make_consumer("reference"))
    assert trial.findings == []
    assert trial.comparisons > 5000
    assert families(stream) <= KNOWN[stream.profile]

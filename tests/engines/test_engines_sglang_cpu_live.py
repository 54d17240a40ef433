"""The real SGLang on a CPU, where it is installed: it agrees with a recording, and a case runs on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierfuzz.conform_live import worker_predicts
from tierfuzz.defects.known import known_defect
from tierfuzz.engines.sglang_cpu.environment import CpuEnvironment
from tierfuzz.fleet import Fleet
from tierfuzz.program import Burst, Fill, FleetConfig, Generate, Operation, Program, WritePolicy
from tierfuzz.prompts import Piece
from tierfuzz.recording import Recording, read_recording
from tierfuzz.runner import Runner

ENVIRONMENT = CpuEnvironment("0.5.17")
pytestmark = pytest.mark.skipif(not ENVIRONMENT.installed, reason=ENVIRONMENT.missing)
RECORDED = "sglang-0.5.17-write_through-p64.jsonl.xz"
SCRIPT = 56  # operations: prime, repeat, probes, fork, exact multiple, growth

PROMPT = (Piece("A", 0, 200),)
OPERATIONS: tuple[Operation, ...] = (
    Generate("prime", 0, PROMPT, 3),
    Fill("fill", 0, "f", target="prime"),
    Generate("probe", 0, PROMPT, 3, "probe"),
    Generate("fork", 0, (Piece("A", 0, 100), Piece("B", 0, 50)), 1, "fork"),
    Burst("burst", (Generate("b1", 0, PROMPT, 5), Generate("b2", 0, (Piece("B", 0, 90),), 20))),
    Fill("again", 0, "g", target="prime"),
    Generate("exact", 0, (Piece("A", 0, 192),), 1, "exact"),
)


def test_the_engine_answers_and_publishes_as_recorded_on_a_gpu(recordings: Path) -> None:
    whole = read_recording(recordings / RECORDED)
    script = Recording(whole.path, whole.header, whole.ops[:SCRIPT], [])
    results = worker_predicts(script, None, "sglang-cpu")
    recorded = [(op.cached_tokens, op.cached_tokens_details) for op in script.ops]
    assert [(result.cached_tokens, result.split) for result in results] == recorded
    stored = [event for result in results for batch in result.batches for event in batch]
    assert len(stored) > SCRIPT
    assert any(split is not None and split.host for _, split in recorded)


@pytest.mark.parametrize("policy", ["write_through", "write_back"])
def test_a_case_runs_finds_nothing_new_and_leaves_nothing(policy: WritePolicy, tmp_path: Path) -> None:
    config = FleetConfig(engine="sglang-cpu", workers=1, policy=policy, host_ratio=3.0)
    with Fleet(config, tmp_path) as fleet:
        runner = Runner(fleet)
        verdicts = runner.run(Program(config, OPERATIONS))
        litter = set(fleet.workers[0].litter)
        assert runner.reach["probe-host-only"] >= 1
        assert runner.held["host-miss"] >= 1
    assert [v for v in verdicts if v.is_violation and not known_defect(v, config)] == []
    assert litter
    assert not any(path.exists() for path in litter)

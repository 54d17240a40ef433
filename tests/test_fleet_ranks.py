"""Workers of two ranks: each has a cache, a stream and a judge of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierfuzz.engines.sim import SimDriver
from tierfuzz.errors import UsageError
from tierfuzz.fleet import Fleet
from tierfuzz.program import (
    Fill,
    FleetConfig,
    Flush,
    Generate,
    Hold,
    Operation,
    Program,
    Release,
    Restart,
)
from tierfuzz.prompts import Piece
from tierfuzz.runner import Runner

TWO = FleetConfig(workers=1, ranks=2, device_tokens=512, host_ratio=3.0)
PROMPT = (Piece("A", 0, 70),)


def on_both(*operations: Operation) -> Program:
    """A prime on each rank, then these."""
    return Program(TWO, (Generate("p0", 0, PROMPT, 2), Generate("p1", 1, PROMPT, 2), *operations))


def test_ranks_share_a_process_and_nothing_else(tmp_path: Path) -> None:
    with Fleet(TWO, tmp_path) as fleet:
        first, second = fleet.workers
        runner = Runner(fleet)
        verdicts = runner.run(
            on_both(
                Fill("f", 1, "f", target="p1"),
                Generate("r0", 0, PROMPT, 2, "repeat"),
                Generate("r1", 1, PROMPT, 2, "probe"),
            )
        )
        assert verdicts == []
        assert first.process is second.process
        assert fleet.mates(first) == [first, second]
        assert (first.judge.reach["device-hit"], first.judge.reach["host-hit"]) == (1, 0)
        assert (second.judge.reach["device-hit"], second.judge.reach["probe-host-only"]) == (0, 1)


def test_a_flush_a_hold_and_a_restart_are_of_the_whole_worker(tmp_path: Path) -> None:
    again = Generate("r1", 1, PROMPT, 2, "repeat")
    with Fleet(TWO, tmp_path) as fleet:
        runner = Runner(fleet)
        for operations in ((Flush("x", 0),), (Restart("x", 0),), (Hold("h", 0), Release("h2", 1))):
            assert runner.run(on_both(*operations, again)) == []
            hits = fleet.workers[1].judge.reach["device-hit"]
            assert hits == isinstance(operations[0], Hold)
            assert [worker.held_tokens for worker in fleet.workers] == [None, None]


def test_a_rank_that_nobody_hears_is_found(tmp_path: Path) -> None:
    unheard = FleetConfig(
        workers=1, ranks=2, device_tokens=512, host_ratio=3.0, plants=("second-rank-unheard",)
    )
    with Fleet(unheard, tmp_path) as fleet:
        program = Program(unheard, on_both(Generate("r1", 1, PROMPT, 2, "repeat")).operations)
        found = {(verdict.oracle, verdict.worker) for verdict in Runner(fleet).run(program)}
    assert found >= {("insert-bound", 1), ("ledger-accounting", 1)}
    assert {worker for _, worker in found} == {1}


def test_an_engine_that_is_driven_with_one_rank_refuses_more(tmp_path: Path) -> None:
    class Single(SimDriver):
        controls = frozenset()

    with pytest.raises(UsageError, match="ranks=2: engine sim is driven with one"):
        Fleet(TWO, tmp_path, driver=Single()).start()

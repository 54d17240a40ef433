"""Shrinking on live workers: a planted fault, fleets that come and go, Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tierfuzz.errors import EnvironmentFailure, WorkerDied
from tierfuzz.fleet import Fleet
from tierfuzz.program import Fill, FleetConfig, Generate, Idle, Operation, Program
from tierfuzz.prompts import Piece
from tierfuzz.runevents import OperationDone, RunEvent, ShrinkStep
from tierfuzz.shrinking import FleetRuns, ShrinkConfig, shrink
from tierfuzz.verdict import Outcome, Verdict

A, B = (Piece("A", 0, 69),), (Piece("B", 0, 37),)
FLEET = FleetConfig(host_ratio=3.0, plants=("host-copy-forgotten",))
OPERATIONS: tuple[Operation, ...] = (
    Generate("b", 1, B, 2),
    Generate("a", 1, A, 2),
    Idle("i", 0),
    Generate("c", 0, B, 1),
    Fill("f", 1, "f", target="a"),
    Generate("p", 1, A, 2, "probe"),
    Generate("d", 0, A, 1),
)
PROGRAM = Program(FLEET, OPERATIONS)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Two workers that forget host copies."""
    with Fleet(FLEET, tmp_path_factory.mktemp("faulty")) as fleet:
        yield fleet


class Steps:
    """A listener that may end the search after some runs."""

    def __init__(self, error: BaseException | None = None, after: int = 0) -> None:
        self.steps: list[ShrinkStep] = []
        self._error, self._after = error, after

    def on_event(self, event: RunEvent) -> None:
        assert isinstance(event, ShrinkStep)  # candidates are no cases of a campaign
        self.steps.append(event)
        if self._error is not None and event.runs >= self._after:
            raise self._error


def test_a_live_fault_is_shrunk_on_its_fleet_and_on_smaller_ones(faulty: Fleet, tmp_path: Path) -> None:
    steps = Steps()
    with FleetRuns(tmp_path, faulty) as runs:
        shrunk = shrink(PROGRAM, runs, ShrinkConfig(oracle="host-miss"), listeners=[steps])
        own = runs.own_workers
    assert shrunk is not None
    result, ran = shrunk.result, shrunk.ran
    assert ran is not None
    assert ran.program == result.program
    assert ran.violates("host-miss")
    done = [event.operation for event in ran.evidence.events if isinstance(event, OperationDone)]
    assert tuple(done) == result.program.operations
    assert result.program == Program(
        FleetConfig(host_ratio=3.0, plants=FLEET.plants, workers=1),
        (
            Generate("a", 0, (Piece("A", 0, 21),), 1),
            Fill("f", 0, "f", target="a"),
            Generate("p", 0, (Piece("A", 0, 21),), 1, "probe"),
        ),
    )
    assert (result.verdict.oracle, result.verdict.operation) == ("host-miss", "p")
    assert (result.minimal, result.unchecked, result.stopped) == (True, (), "")
    assert result.runs <= 40
    assert [step.runs for step in steps.steps][-1] == result.runs
    assert len(own) == 1
    assert not own[0].process.alive()
    assert all(worker.process.alive() for worker in faulty.workers)


def test_a_program_that_does_not_fail_gives_nothing(sim_fleet: Fleet, tmp_path: Path) -> None:
    program = Program(sim_fleet.config, OPERATIONS)
    with FleetRuns(tmp_path, sim_fleet) as runs:
        assert shrink(program, runs, ShrinkConfig(tries=1)) is None


def test_ctrl_c_keeps_the_best_so_far(faulty: Fleet, tmp_path: Path) -> None:
    seen = Verdict("host-miss", Outcome.VIOLATION, 1, "p", "message")
    with FleetRuns(tmp_path, faulty) as runs:
        steps = Steps(KeyboardInterrupt(), after=4)
        shrunk = shrink(PROGRAM, runs, ShrinkConfig(), seen, listeners=[steps])
        assert shrunk is not None
        result = shrunk.result
        assert (result.stopped, result.minimal, result.length) == ("interrupted", None, 3)
        assert result.unchecked
        with pytest.raises(KeyboardInterrupt):
            shrink(PROGRAM, runs, ShrinkConfig(), listeners=[Steps(KeyboardInterrupt())])


class DyingRuns(FleetRuns):
    """Workers cannot be reached any more after some runs."""

    def __init__(self, logs: Path, fleet: Fleet, after: int) -> None:
        super().__init__(logs, fleet)
        self._left = after

    def run(self, program: Program) -> list[Verdict]:
        self._left -= 1
        if self._left < 0:
            raise WorkerDied("gone\nlog")
        return super().run(program)


def test_an_environment_that_breaks_keeps_the_best_so_far(faulty: Fleet, tmp_path: Path) -> None:
    shrunk = shrink(PROGRAM, DyingRuns(tmp_path, faulty, 3), ShrinkConfig())
    assert shrunk is not None
    assert shrunk.result.stopped == "gone"
    with pytest.raises(EnvironmentFailure):
        shrink(PROGRAM, DyingRuns(tmp_path, faulty, 0), ShrinkConfig())

"""A run on a worker that runs already: nothing of it is changed, and faults are found all the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tierfuzz.clock import SYSTEM_CLOCK
from tierfuzz.engines.attached import attached_config, attached_to
from tierfuzz.engines.registry import driver_for
from tierfuzz.events import AllBlocksCleared, Batch, BlockStored, Tier
from tierfuzz.fleet import Fleet, Worker
from tierfuzz.preflight.checks import checks
from tierfuzz.preflight.probe import examine
from tierfuzz.program import Fill, FleetConfig, Flush, Generate, Operation, Program, Restart
from tierfuzz.prompts import Piece, tokens_of
from tierfuzz.runner import Runner
from tierfuzz.verdict import Verdict
from tierfuzz.worker.http import Call

OLD = tokens_of((Piece("old", 0, 129),))
PROMPT = (Piece("A", 0, 129),)
OPERATIONS: tuple[Operation, ...] = (
    Generate("prime", 0, PROMPT, 1),
    Flush("flush", 0),
    Restart("restart", 0),
    Fill("fill", 0, "f", target="prime"),
    Generate("probe", 0, PROMPT, 1, "probe"),
)


@contextmanager
def running(folder: Path, *plants: str) -> Iterator[Worker]:
    """A worker that has served somebody else."""
    config = FleetConfig(workers=1, host_ratio=3.0, plants=plants)
    with Fleet(config, folder / "owner") as fleet:
        worker = fleet.workers[0]
        worker.client.generate(Call("old", OLD, 3)).usable()
        assert fleet.settle(worker).at_rest
        worker.subscriber.drain()
        yield worker


def run_attached(
    worker: Worker, folder: Path, monkeypatch: pytest.MonkeyPatch, destructive: bool = False
) -> tuple[list[Verdict], int]:
    """The program on it as a stranger runs it: verdicts, and how often the probe was served from host."""
    monkeypatch.setenv("TIERFUZZ_API_KEY", str(worker.launch.api_key))
    url, info = worker.launch.base_url, worker.client.server_info()
    config = attached_config([info], [attached_to(info, url)], driver_for("sim"), destructive)
    with Fleet(config, folder / "stranger") as fleet:
        runner = Runner(fleet)
        verdicts = runner.run(Program(config, OPERATIONS))
        return verdicts, runner.reach["probe-host-only"]


def events_of(worker: Worker) -> list[Batch]:
    """What the worker has published since it was last asked."""
    assert worker.subscriber.sync() is not None
    return worker.subscriber.drain()


def clears(batches: list[Batch]) -> int:
    """How often it was emptied."""
    return sum(isinstance(event, AllBlocksCleared) for batch in batches for event in batch.events)


def test_an_attached_worker_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path) as worker:
        pid = worker.process.pid
        for _ in range(2):  # the second run meets what the first has left
            verdicts, probed = run_attached(worker, tmp_path, monkeypatch)
            assert verdicts == []
            assert probed == 1
        assert clears(events_of(worker)) == 0
        assert worker.process.pid == pid
        assert worker.process.alive()
        again = worker.client.generate(Call("again", OLD, 1)).usable()
        assert again.cached_tokens == 128  # what somebody else had computed is still there


def test_every_case_sends_streams_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored: list[set[int]] = []
    with running(tmp_path) as worker:
        for _ in range(2):
            run_attached(worker, tmp_path, monkeypatch)
            stored.append(
                {
                    h
                    for batch in events_of(worker)
                    for event in batch.events
                    if isinstance(event, BlockStored) and event.tier is Tier.HOST
                    for h in event.hashes
                }
            )
    assert stored[0]
    assert not stored[0] & stored[1]


def test_with_permission_it_is_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path) as worker:
        verdicts, probed = run_attached(worker, tmp_path, monkeypatch, destructive=True)
        assert verdicts == []
        assert probed == 0  # the program's own flush came after the prime
        assert clears(events_of(worker)) >= 2


def test_a_fault_is_found_on_an_attached_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path, "no-backup") as worker:
        verdicts, _ = run_attached(worker, tmp_path, monkeypatch)
        assert "no-backup" in {verdict.oracle for verdict in verdicts}


def test_a_preflight_of_a_good_worker_passes_and_empties_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as worker:
        seen = examine(worker.launch.base_url, "", "", SYSTEM_CLOCK, worker.launch.api_key)
        assert [check for check in checks(seen) if not check.ok] == []
        assert clears(events_of(worker)) == 0
        locked = examine(worker.launch.base_url, "", "", SYSTEM_CLOCK)
        assert {"idle probe", "rest"} == {check.name for check in checks(locked) if not check.ok}


def test_a_worker_that_is_not_there_is_not_reachable() -> None:
    seen = examine("http://127.0.0.1:9", "", "", SYSTEM_CLOCK)
    assert [check.name for check in checks(seen)] == ["reachable"]

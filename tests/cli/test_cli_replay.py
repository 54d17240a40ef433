"""tierfuzz replay: what it takes, on which workers it runs, what it says; without processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tierfuzz.cli import replay as module
from tierfuzz.cli.programs import accused_in, changes, load_any, on_engine, on_workers
from tierfuzz.errors import FormatError, UsageError, WorkerDied
from tierfuzz.journal import Journal
from tierfuzz.program import Attached, FleetConfig, Flush, Idle, Program, dump_program
from tierfuzz.report.handover.accused import dump_verdicts
from tierfuzz.runevents import OperationStarted, RunStarted
from tierfuzz.verdict import Outcome, Verdict

FLEET = FleetConfig(workers=1, plants=("no-backup",), profile="sglang-0.5.17", extra_args=("--x",))
PROGRAM = Program(FLEET, (Flush("op0", 0), Idle("op1", 0)))
MISS = Verdict("host-miss", Outcome.VIOLATION, 0, "op1", "device 16, host 0 tokens")
UNSURE = Verdict("content", Outcome.UNKNOWN, 0, "op1", "who knows")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a violation, as far as replay reads it."""
    (tmp_path / "program.json").write_bytes(dump_program(PROGRAM))
    (tmp_path / "verdicts.json").write_text(dump_verdicts([MISS, UNSURE, MISS]))
    return tmp_path


def test_a_program_a_journal_and_a_folder_are_read(folder: Path) -> None:
    journal = Journal(folder / "journal.jsonl")
    journal.on_event(RunStarted(FLEET, 1))
    journal.on_event(OperationStarted(PROGRAM.operations[0]))
    journal.close()
    assert load_any(folder) == load_any(folder / "program.json") == PROGRAM
    assert load_any(folder / "journal.jsonl").operations == PROGRAM.operations[:1]


def test_a_folder_says_what_was_violated(folder: Path) -> None:
    assert accused_in(folder) == ("host-miss",)
    assert accused_in(folder / "program.json") == ()


def test_a_folder_without_a_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no program\.json in it"):
        load_any(tmp_path)


@pytest.mark.parametrize("text", ['{"format":2}', '{"format":1,"verdicts":3}', "garbage"])
def test_verdicts_that_cannot_be_read_are_refused(text: str, folder: Path) -> None:
    (folder / "verdicts.json").write_text(text)
    with pytest.raises(FormatError, match="verdicts"):
        accused_in(folder)


def test_another_engine_gets_nothing_that_belongs_to_the_first() -> None:
    fleet = on_engine(PROGRAM, "sglang", without_plants=False).fleet
    assert (fleet.engine, fleet.plants, fleet.extra_args, fleet.profile) == ("sglang", (), (), "default")
    assert on_engine(PROGRAM, "sim", without_plants=False) == on_engine(PROGRAM, "", False) == PROGRAM
    assert on_engine(PROGRAM, "", without_plants=True).fleet.plants == ()
    assert on_engine(PROGRAM, "", without_plants=True).fleet.profile == "sglang-0.5.17"


def test_running_workers_take_the_place_of_the_program_s() -> None:
    there = FleetConfig(workers=1, attached=(Attached("http://gpu7:30000"),), page_size=64)
    assert on_workers(PROGRAM, there) == Program(there, PROGRAM.operations)
    assert changes(FLEET, there) == ["page_size 64, was 16", "host_tokens 2112, was 2064"]
    assert on_engine(on_workers(PROGRAM, there), "sglang", without_plants=False).fleet.attached == ()
    second = Program(FleetConfig(workers=2), (Flush("op0", 1),))
    with pytest.raises(UsageError, match="--worker was given 1 times; expected 2"):
        on_workers(second, there)


def replayed(patch: pytest.MonkeyPatch, *line: str, runs: list[list[Verdict]], dies: bool = False) -> Result:
    """`tierfuzz replay` where the runs give these verdicts, and the worker dies after them if it does."""

    def runners(program: Program, times: int, warm: bool) -> Iterator[Any]:
        assert not warm
        assert program.operations == PROGRAM.operations
        for verdicts in runs[:times]:
            yield SimpleNamespace(verdicts=verdicts, held=Counter(["host-miss"]), tape=[])
        if dies:
            raise WorkerDied("worker process 7 is not running")

    patch.setattr(module, "_runners", runners)
    return CliRunner().invoke(module.replay, list(line))


def test_a_flaky_program_is_told_with_its_first_failure(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    done = replayed(monkeypatch, str(folder), runs=[[UNSURE], [MISS], [MISS], [MISS]])
    assert done.exit_code == 1
    assert done.output.endswith("FLAKY 2 of 3: host-miss\n")
    assert done.output.count("device 16, host 0 tokens") == 1


def test_a_fixed_one_exits_0(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    done = replayed(monkeypatch, str(folder), "--times", "2", runs=[[], []])
    assert (done.exit_code, done.output) == (0, "FIXED: 0 of 2 runs violated an oracle\n")


def test_a_worker_that_dies_is_an_error_not_a_verdict(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    done = replayed(monkeypatch, str(folder), runs=[[]], dies=True)
    assert done.exit_code == 3
    assert done.output == "ERROR after 1 of 3 runs: worker process 7 is not running\n"


def test_the_folder_of_a_program_can_be_written_later(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    out = folder / "out"
    line = (str(folder / "program.json"), "--out", str(out))
    assert replayed(monkeypatch, *line, runs=[[]]).exit_code == 0
    assert not out.exists()
    done = replayed(monkeypatch, *line, runs=[[MISS]])
    assert f"folder: {out}" in done.output
    assert load_any(out) == PROGRAM
    assert accused_in(out) == ("host-miss",)

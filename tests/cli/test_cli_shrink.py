"""tierfuzz shrink as a person calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tierfuzz.cli import main
from tierfuzz.evidence import Evidence
from tierfuzz.program import Fill, FleetConfig, Generate, Idle, Operation, Program, dump_program, load_program
from tierfuzz.prompts import Piece
from tierfuzz.report.handover.writer import write_handover
from tierfuzz.verdict import Outcome, Verdict

A = (Piece("A", 0, 21),)
OPERATIONS: tuple[Operation, ...] = (
    Idle("i", 0),
    Generate("a", 0, A, 1),
    Fill("f", 0, "f", target="a"),
    Generate("p", 0, A, 1, "probe"),
    Idle("j", 0),
)


def file_of(folder: Path, *plants: str) -> Path:
    path = folder / "program.json"
    fleet = FleetConfig(host_ratio=3.0, workers=1, plants=plants)
    path.write_bytes(dump_program(Program(fleet, OPERATIONS)))
    return path


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A program that fails."""
    return file_of(tmp_path, "host-copy-forgotten")


def test_a_failing_program_gets_small_and_exits_1(broken: Path) -> None:
    done = CliRunner().invoke(main, ["shrink", str(broken), "--oracle", "host-miss"])
    assert done.exit_code == 1, done.output
    small = load_program(broken.with_name("program-min.json"))
    assert small.operations == OPERATIONS[1:4]
    assert "host-miss: 5 operations became 3 in " in done.output
    assert "without any one operation it passes" in done.output
    names = [path.name for path in sorted(broken.parent.iterdir())]
    assert names == ["program-min", "program-min.json", "program.json"]
    assert "host-miss" in (broken.parent / "program-min" / "verdict.txt").read_text()


def test_a_search_that_ran_out_goes_on_with_a_larger_budget(broken: Path) -> None:
    line = [
        "shrink",
        str(broken),
        "--oracle",
        "host-miss",
        "--json",
        "--out",
        str(broken.with_name("o.json")),
    ]
    first = CliRunner().invoke(main, [*line, "--budget-runs", "4"])
    second = CliRunner().invoke(main, line)
    assert (first.exit_code, second.exit_code) == (1, 1), (first.output, second.output)
    early, late = json.loads(first.output), json.loads(second.output)
    assert (early["minimal"], early["runs"], early["kind"]) == (None, 4, "shrunk")
    assert "4 runs" in early["stopped"]
    assert (late["minimal"], late["stopped"]) == (True, "")
    assert not broken.with_name("o.shrink.jsonl").exists()


def test_a_budget_for_no_run_at_all_proves_nothing(broken: Path) -> None:
    done = CliRunner().invoke(main, ["shrink", str(broken), "--budget-operations", "2"])
    assert done.exit_code == 3
    assert "nothing has failed yet, and the budget of 2 operations was not enough" in done.output


def test_the_folder_of_a_violation_is_shrunk_for_what_it_accuses(broken: Path) -> None:
    folder = broken.with_name("folder")
    verdicts = [
        Verdict(oracle, Outcome.VIOLATION, 0, "p", "m") for oracle in ("ledger-accounting", "host-miss")
    ]
    write_handover(folder, load_program(broken), verdicts, Evidence())
    done = CliRunner().invoke(main, ["shrink", str(folder), "--json"])
    assert done.exit_code == 1, done.output
    assert json.loads(done.output)["verdict"]["oracle"] == "ledger-accounting"
    assert load_program(broken.with_name("folder-min.json")).operations == OPERATIONS[1:4]


def test_a_program_that_does_not_fail_without_its_plant_is_fixed_and_exits_0(broken: Path) -> None:
    done = CliRunner().invoke(main, ["shrink", str(broken), "--without-plants", "--tries", "1"])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1].startswith("FIXED")


def test_an_unknown_oracle_is_wrong_usage(broken: Path) -> None:
    done = CliRunner().invoke(main, ["shrink", str(broken), "--oracle", "host-mess"])
    assert done.exit_code == 2
    assert "--oracle host-mess: expected one of: host-miss" in done.output

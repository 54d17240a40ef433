"""The journal is on disk before a request is sent, and a cut-off one can be replayed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tierfuzz.errors import FormatError
from tierfuzz.journal import Journal, load_journal
from tierfuzz.program import FleetConfig, Flush, Generate, Idle, Operation
from tierfuzz.prompts import Piece
from tierfuzz.runevents import CaseStarted, Emptied, OperationStarted, RunStarted

FLEET = FleetConfig(policy="write_back")
FIRST: Operation = Generate("op0", 0, (Piece("A", 0, 9),), 1)
SECOND: Operation = Idle("op1", 1)


def written(path: Path) -> Journal:
    """A journal of two cases, not closed."""
    journal = Journal(path)
    journal.on_event(RunStarted(FLEET, 5))
    journal.on_event(CaseStarted(1))
    journal.on_event(OperationStarted(Flush("old", 0)))
    journal.on_event(CaseStarted(2))
    journal.on_event(OperationStarted(FIRST))
    journal.on_event(OperationStarted(SECOND))
    return journal


def test_every_operation_is_on_disk_before_the_journal_is_closed(tmp_path: Path) -> None:
    journal = written(tmp_path / "journal.jsonl")
    program = load_journal(tmp_path / "journal.jsonl")
    journal.close()
    assert program.fleet == FLEET
    assert program.operations == (FIRST, SECOND)


def test_a_case_that_is_run_again_is_in_the_journal_once(tmp_path: Path) -> None:
    journal = written(tmp_path / "journal.jsonl")
    journal.on_event(Emptied())
    journal.on_event(OperationStarted(FIRST))
    journal.close()
    assert load_journal(tmp_path / "journal.jsonl").operations == (FIRST,)
    assert b'{"type":"case","number":2}' in (tmp_path / "journal.jsonl").read_bytes().splitlines()[-2]


def test_a_last_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path).close()
    path.write_bytes(path.read_bytes()[:-10])
    assert load_journal(path).operations == (FIRST,)


def test_garbage_inside_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path).close()
    lines = path.read_bytes().split(b"\n")
    lines[2] = b"garbage"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(FormatError, match="line 3"):
        load_journal(path)


def test_a_file_without_a_head_is_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"")
    with pytest.raises(FormatError, match="no journal"):
        load_journal(path)


def test_an_unknown_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path).close()
    path.write_bytes(path.read_bytes().replace(b'"format":1', b'"format":7'))
    with pytest.raises(FormatError, match="journal format 7"):
        load_journal(path)


def test_another_version_is_refused_before_its_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"type":"journal","format":2,"fleets":[]}\n{"type":"wave","of":"what"}\n')
    with pytest.raises(FormatError, match="journal format 2; expected format 1"):
        load_journal(path)


def test_a_head_that_was_cut_off_is_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path).close()
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(FormatError, match="no journal"):
        load_journal(path)


KILLED = """
import os, signal, sys
import signal
import subprocess
import sys
from pathlib import Path
from tierfuzz.journal import Journal
from tierfuzz.program import FleetConfig, Generate
from tierfuzz.prompts import Piece
from tierfuzz.runevents import CaseStarted, Emptied, OperationStarted, RunStarted
journal = Journal(Path(sys.argv[1]))
journal.on_event(RunStarted(FleetConfig(policy="write_back"), 5))
journal.on_event(CaseStarted(1))
journal.on_event(OperationStarted(Generate("op0", 0, (Piece("A", 0, 9),), 1)))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_run_that_was_killed_leaves_a_program(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    ended = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert load_journal(path).operations == (FIRST,)

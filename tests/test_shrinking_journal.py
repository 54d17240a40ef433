"""The journal of a search: what a kill leaves, what another search finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierfuzz.errors import FormatError
from tierfuzz.program import FleetConfig, Idle, Program
from tierfuzz.shrink.trials import Tried
from tierfuzz.shrinking import ShrinkConfig
from tierfuzz.shrinking_journal import ShrinkJournal
from tierfuzz.verdict import Outcome, Verdict

PROGRAM = Program(FleetConfig(), (Idle("op0", 0),))
CONFIG = ShrinkConfig(oracle="content")
FAILED = Tried("k1", 3, 0.5, Verdict("content", Outcome.VIOLATION, 1, "op0", "other", facts={"a": 1}), 0)
RUNS = [FAILED, Tried("k2", 2, 0.75)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of a search that was killed after two runs."""
    path = tmp_path / "x.shrink.jsonl"
    journal = ShrinkJournal(path, PROGRAM, CONFIG)
    for tried in RUNS:
        journal.note(tried)
    return path


def test_the_same_search_goes_on(path: Path) -> None:
    assert ShrinkJournal(path, PROGRAM, CONFIG).earlier == RUNS
    again = ShrinkJournal(path, PROGRAM, CONFIG)
    again.note(FAILED)
    assert ShrinkJournal(path, PROGRAM, CONFIG).earlier == [*RUNS, FAILED]


def test_a_line_that_was_cut_off_is_left_out(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])
    assert ShrinkJournal(path, PROGRAM, CONFIG).earlier == RUNS[:1]


@pytest.mark.parametrize(
    ("program", "config"),
    [
        (Program(FleetConfig(), (Idle("op1", 0),)), CONFIG),
        (PROGRAM, ShrinkConfig(oracle="host-miss")),
        (PROGRAM, ShrinkConfig(oracle="content", tries=3)),
    ],
)
def test_another_search_begins_anew(path: Path, program: Program, config: ShrinkConfig) -> None:
    assert ShrinkJournal(path, program, config).earlier == []


def test_the_journal_goes_when_the_search_is_through(path: Path) -> None:
    ShrinkJournal(path, PROGRAM, CONFIG).done()
    assert not path.exists()


@pytest.mark.parametrize(
    "first", [b'{"type":"shrink","format":2}', b'{"type":"journal","format":1}', b"notes", b""]
)
def test_what_is_no_journal_of_this_format_is_refused_and_kept(tmp_path: Path, first: bytes) -> None:
    path = tmp_path / "x.shrink.jsonl"
    path.write_bytes(first + b"\n")
    with pytest.raises(FormatError, match="expected a shrink journal of format 1"):
        ShrinkJournal(path, PROGRAM, CONFIG)
    assert path.read_bytes() == first + b"\n"

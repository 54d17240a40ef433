"""A journal for each policy of a campaign."""

from __future__ import annotations

from pathlib import Path

from tierfuzz.journal import load_journal
from tierfuzz.program import FleetConfig, Idle, Program
from tierfuzz.report.journals import PolicyJournals
from tierfuzz.runevents import CaseStarted, OperationStarted, RunEnded, RunStarted

THROUGH, BACK = FleetConfig(policy="write_through"), FleetConfig(policy="write_back")


def test_each_policy_has_the_program_of_its_last_case(tmp_path: Path) -> None:
    journals = PolicyJournals(tmp_path)
    for fleet, name in ((THROUGH, "a"), (BACK, "b")):
        journals.on_event(RunStarted(fleet, 5))
        journals.on_event(CaseStarted(1))
        journals.on_event(OperationStarted(Idle(name, 0)))
        journals.on_event(RunEnded(False))
    assert load_journal(tmp_path / "journal-write_through.jsonl") == Program(THROUGH, (Idle("a", 0),))
    assert load_journal(tmp_path / "journal-write_back.jsonl") == Program(BACK, (Idle("b", 0),))


def test_an_operation_is_on_disk_before_it_is_done(tmp_path: Path) -> None:
    journals = PolicyJournals(tmp_path)
    journals.on_event(RunStarted(THROUGH, 5))
    journals.on_event(CaseStarted(1))
    journals.on_event(OperationStarted(Idle("a", 0)))
    assert load_journal(tmp_path / "journal-write_through.jsonl").operations == (Idle("a", 0),)
    journals.close()


def test_a_run_without_an_end_does_not_keep_its_file_open(tmp_path: Path) -> None:
    journals = PolicyJournals(tmp_path)
    journals.on_event(RunStarted(THROUGH, 5))
    journals.on_event(RunStarted(BACK, 5))
    journals.on_event(RunEnded(True))
    assert load_journal(tmp_path / "journal-write_back.jsonl") == Program(BACK, ())

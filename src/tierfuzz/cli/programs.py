"""Programs from the command line: a program, a journal, or the folder of a violation."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tierfuzz.errors import UsageError
from tierfuzz.journal import load_journal
from tierfuzz.program import Program, load_program
from tierfuzz.report.handover.accused import VERDICTS, load_verdicts
from tierfuzz.report.handover.writer import PROGRAM


def load_any(path: Path) -> Program:
    """The program of a file or folder; of a journal, the one of its last case."""
    if path.is_dir():
        if not (path / PROGRAM).exists():
            raise UsageError(
                f"{path}: no {PROGRAM} in it; expected a program, a journal, or the folder of a violation"
            )
        return load_program(path / PROGRAM)
    return load_journal(path) if path.suffix == ".jsonl" else load_program(path)


def accused_in(path: Path) -> tuple[str, ...]:
    """Oracles that were violated when this folder was written; () for anything else."""
    if not (path / VERDICTS).is_file():
        return ()
    found = load_verdicts(path / VERDICTS)
    return tuple(dict.fromkeys(verdict.oracle for verdict in found if verdict.is_violation))


def on_engine(program: Program, engine: str, without_plants: bool) -> Program:
    """The same operations on another engine ("": the program's own). Faults, profile and extra arguments
    belong to the engine that they were written for."""
    fleet = program.fleet
    if engine and engine != fleet.engine:
        fleet = msgspec.structs.replace(fleet, engine=engine, plants=(), extra_args=(), profile="default")
    if without_plants:
        fleet = msgspec.structs.replace(fleet, plants=())
    return msgspec.structs.replace(program, fleet=fleet)

"""Shrink one program from the command line, with a journal, progress and Ctrl-C."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from tierfuzz.cli.interrupt import Interrupt
from tierfuzz.cli.programs import accused_in, load_any, placed
from tierfuzz.clock import SYSTEM_CLOCK
from tierfuzz.errors import ExitCode, UsageError
from tierfuzz.oracles.registry import ORACLES
from tierfuzz.program import Program, dump_program
from tierfuzz.report.handover.writer import write_handover
from tierfuzz.report.shrunk import ShrinkProgress, print_shrunk
from tierfuzz.runevents import Listener
from tierfuzz.shrink.budget import Limits
from tierfuzz.shrink.result import RESULT_FORMAT, ShrinkResult
from tierfuzz.shrinking import FleetRuns, ShrinkConfig, Shrunk, shrink
from tierfuzz.shrinking_journal import ShrinkJournal


def shrink_program(given: dict[str, Any]) -> ExitCode:
    """Do what the options of `tierfuzz shrink` ask for; VIOLATION with a smaller program, or HELD."""
    file: Path = given["file"]
    program = placed(load_any(file), given)
    given["oracle"] = given["oracle"] or next(iter(accused_in(file)), "")
    out: Path = given["out"] or file.with_name(f"{file.stem}-min.json")
    console = Console(quiet=given["json_"])
    journal = ShrinkJournal(out.with_suffix(".shrink.jsonl"), program, config := _config(given))
    if journal.earlier:
        console.print(f"Going on after {len(journal.earlier)} runs.", highlight=False)
    shrunk = _search(program, config, journal, console)
    if shrunk is None or not shrunk.result.stopped:
        journal.done()
    if given["json_"]:
        click.echo(
            msgspec.json.encode(shrunk.result if shrunk else {"kind": "fixed", "format": RESULT_FORMAT})
        )
    if shrunk is None:
        console.print("FIXED: no run violated an oracle; there is nothing to shrink")
        return ExitCode.HELD
    _keep(shrunk, out)
    _tell(shrunk.result, out, journal, console)
    return ExitCode.VIOLATION


def _config(given: dict[str, Any]) -> ShrinkConfig:
    if given["oracle"] and given["oracle"] not in ORACLES:
        raise UsageError(f"--oracle {given['oracle']}: expected one of: {', '.join(ORACLES)}")
    limits = Limits(given["budget_runs"], given["budget_operations"], given["budget_seconds"])
    return ShrinkConfig(limits, given["accept"], given["tries"] or 0, given["oracle"])


def _search(
    program: Program, config: ShrinkConfig, journal: ShrinkJournal, console: Console
) -> Shrunk | None:
    progress = ShrinkProgress(console, SYSTEM_CLOCK, live=console.is_terminal and not console.quiet)
    try:
        with (
            Interrupt() as interrupt,
            tempfile.TemporaryDirectory(prefix="tierfuzz-") as logs,
            FleetRuns(Path(logs)) as runs,
        ):
            listeners: list[Listener] = [interrupt, progress]
            return shrink(
                program, runs, config, listeners=listeners, earlier=journal.earlier, note=journal.note
            )
    finally:
        progress.close()


def _keep(shrunk: Shrunk, out: Path) -> None:
    """The program, and its folder beside it."""
    out.write_bytes(dump_program(shrunk.result.program))
    if (ran := shrunk.ran) is not None:
        write_handover(out.with_suffix(""), ran.program, ran.verdicts, ran.evidence)


def _tell(result: ShrinkResult, out: Path, journal: ShrinkJournal, console: Console) -> None:
    print_shrunk(console, result)
    text = f"The program is in {out}; try: tierfuzz replay {out}"
    if result.stopped:
        text += f"\nThe same command goes on from {journal.path} (a larger budget may be needed)."
    console.print(text, highlight=False, markup=False, soft_wrap=True)

"""tierfuzz replay: run a program, the last case of a journal, or the folder of a violation again."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tierfuzz.cli.programs import accused_in, load_any, place_options, placed
from tierfuzz.engines.registry import driver_of
from tierfuzz.errors import EnvironmentFailure
from tierfuzz.evidence import evidence_of
from tierfuzz.fleet import Fleet
from tierfuzz.program import Program
from tierfuzz.replayed import Replayed, ending
from tierfuzz.report.handover.short import short_text
from tierfuzz.report.handover.writer import write_handover
from tierfuzz.runner import Runner
from tierfuzz.violations import describe


@click.command()
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option("--times", type=click.IntRange(1), default=3, show_default=True, help="Runs.")
@click.option("--warm", is_flag=True, help="All runs on the same workers, emptied in between.")
@place_options
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the folder of a violation for the first run that fails.",
)
def replay(file: Path, times: int, warm: bool, out: Path | None, **given: Any) -> None:
    """Run FILE (a program, a journal, or the folder of a violation) on workers of its own.

    FIXED exits 0, FAILED k of n and FLAKY k of n exit 1, ERROR (environment) exits 3, UNPROVED (what was
    violated was not asked) exits 4.
    """
    program = placed(load_any(file), given)
    replayed = Replayed(times, accused_in(file))
    try:
        for runner in _runners(program, times, warm):
            _note(replayed, runner, program, out)
    except EnvironmentFailure as error:
        replayed.error = str(error)
    for line in ending(replayed):
        click.echo(line)
    sys.exit(int(replayed.exit_code))


def _runners(program: Program, times: int, warm: bool) -> Iterator[Runner]:
    """A runner that has run the program, as often; on fresh workers unless `warm`, or starting is dear."""
    fleets = 1 if warm or driver_of(program.fleet).dear_restarts else times
    for _ in range(fleets):
        with (
            tempfile.TemporaryDirectory(prefix="tierfuzz-") as logs,
            Fleet(program.fleet, Path(logs)) as fleet,
        ):
            runner = Runner(fleet)
            for _ in range(times // fleets):
                runner.run(program)
                yield runner


def _note(replayed: Replayed, runner: Runner, program: Program, out: Path | None) -> None:
    """Count a run; show the first that fails, and write its folder where that is wanted."""
    failed = [verdict for verdict in runner.verdicts if verdict.is_violation]
    first = bool(failed) and not any(replayed.failed)
    replayed.add({verdict.oracle for verdict in failed}, set(runner.held))
    if not first:
        return
    for verdict in failed:
        click.echo(describe(verdict))
    if out is not None:
        evidence = evidence_of(runner.tape)
        write_handover(out, program, failed, evidence)
        click.echo(short_text(program, failed, evidence, out))

"""tierfuzz replay: run a program, the last case of a journal, or the folder of a violation again."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from tierfuzz.cli.programs import accused_in, load_any, on_engine
from tierfuzz.engines.registry import driver_for
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
@click.option("--engine", default="", help="Run it on another engine than it was written for.")
@click.option("--without-plants", is_flag=True, help="Leave planted faults out: is it the plant?")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the folder of a violation for the first run that fails.",
)
def replay(file: Path, times: int, engine: str, without_plants: bool, out: Path | None) -> None:
    """Run FILE (a program, a journal, or the folder of a violation) on workers of its own.

    FIXED exits 0, FAILED k of n and FLAKY k of n exit 1, ERROR (environment) exits 3, UNPROVED (what was
    violated was not asked) exits 4.
    """
    program = on_engine(load_any(file), engine, without_plants)
    replayed = Replayed(times, accused_in(file))
    try:
        for runner in _runners(program, times):
            _note(replayed, runner, program, out)
    except EnvironmentFailure as error:
        replayed.error = str(error)
    for line in ending(replayed):
        click.echo(line)
    sys.exit(int(replayed.exit_code))


def _runners(program: Program, times: int) -> Iterator[Runner]:
    """A runner that has run the program, as often; on fresh workers unless starting them is dear."""
    driver_for(program.fleet.engine)
    fleets = 1 if driver_for(program.fleet.engine).dear_restarts else times
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

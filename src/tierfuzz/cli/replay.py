"""tierfuzz replay: run a program or the last case of a journal again."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import click

from tierfuzz.errors import ExitCode
from tierfuzz.fleet import Fleet
from tierfuzz.journal import load_journal
from tierfuzz.program import Program, load_program
from tierfuzz.runner import Runner
from tierfuzz.violations import describe


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--times", type=click.IntRange(1), default=3, show_default=True)
def replay(file: Path, times: int) -> None:
    """Run FILE (a program, or a journal that was cut off) on fresh workers: FAILED k of n, or FIXED."""
    program = load_journal(file) if file.suffix == ".jsonl" else load_program(file)
    failed: Counter[str] = Counter()
    for number in range(times):
        failed.update(_once(program, first=number == 0))
    if not failed:
        click.echo(f"FIXED: 0 of {times} runs violated an oracle")
        sys.exit(int(ExitCode.HELD))
    for oracle, count in failed.most_common():
        click.echo(f"{'FAILED' if count == times else 'FLAKY'} {count} of {times}: {oracle}")
    sys.exit(int(ExitCode.VIOLATION))


def _once(program: Program, first: bool) -> set[str]:
    with tempfile.TemporaryDirectory(prefix="tierfuzz-") as logs, Fleet(program.fleet, Path(logs)) as fleet:
        verdicts = [verdict for verdict in Runner(fleet).run(program) if verdict.is_violation]
    if first:
        for verdict in verdicts:
            click.echo(describe(verdict))
    return {verdict.oracle for verdict in verdicts}

"""tierfuzz conform: recordings of a real engine against the step model, or a live simulated worker."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click
import msgspec

from tierfuzz.conform import OVERLAP, ConformRow, conform_file, find_recordings, model_predicts
from tierfuzz.errors import ExitCode
from tierfuzz.model.replay import OpResult
from tierfuzz.recording import Recording


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--worker", is_flag=True, help="Run a live simulated worker instead of the model alone.")
@click.option(
    "--engine", default="sim", help="Run a live worker of this real engine, of the recorded version."
)
@click.option("--engine-version", default="", help="Another version than the recorded one.")
@click.option("--profile", default=None, help="Rules to use [default: those of the recorded version]")
@click.option("--json", "json_", is_flag=True, help="Print one JSON array and nothing else.")
def conform(
    paths: tuple[Path, ...],
    worker: bool,
    engine: str,
    engine_version: str,
    profile: str | None,
    json_: bool,
) -> None:
    """Compare results and events of recordings (files or folders); exit 1 on a difference."""
    predict = model_predicts
    if worker or engine != "sim":
        predict = partial(_live, engine=engine, version=engine_version, quiet=json_)
    rows: list[ConformRow] = []
    for path in find_recordings(paths):
        rows.append(conform_file(path, profile, predict))
        if not json_:
            _print(rows[-1])
    if json_:
        click.echo(msgspec.json.encode(rows))
    sys.exit(int(ExitCode.HELD if all(row.ok for row in rows) else ExitCode.VIOLATION))


def _live(
    recording: Recording, profile: str | None, *, engine: str, version: str, quiet: bool
) -> list[OpResult]:
    """Predictions of a live worker; progress goes to stderr, for a real engine takes minutes."""
    from tierfuzz.conform_live import worker_predicts

    say = None if quiet or engine == "sim" else lambda text: click.echo(text, err=True)
    return worker_predicts(recording, profile, engine, version, say)


def _print(row: ConformRow) -> None:
    click.echo(f"{'ok  ' if row.ok else 'DIFF'} {row.file}: {_figures(row)}")
    for difference in row.differences:
        click.echo(f"     {difference}")


def _figures(row: ConformRow) -> str:
    if row.kind == OVERLAP:
        return f"overlap, claims {row.results_ok}/{row.results}"
    text = (
        f"sequential, results {row.results_ok}/{row.results}, windows {row.windows_ok}/{row.windows}, "
        f"boundaries {row.boundaries_ok}/{row.boundaries}"
    )
    apart = (("late", row.late), ("moved back", row.spilt), ("late ends", row.boundaries_late))
    extra = [f"{name} {value}" for name, value in apart if value]
    return text + (f" ({', '.join(extra)})" if extra else "")

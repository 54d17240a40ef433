"""tierfuzz shrink STREAM --consumer NAME: the least of an event stream on which a consumer is wrong."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from tierfuzz.cli.suspect import Suspect
from tierfuzz.errors import ExitCode
from tierfuzz.orders.check import Trial, check
from tierfuzz.orders.files import load_stream, save_stream
from tierfuzz.orders.reduce import reduce
from tierfuzz.orders.story import story
from tierfuzz.program import WritePolicy
from tierfuzz.report.orders import told


def shrink_stream(
    path: Path, suspect: Suspect, policy: WritePolicy | None, json_: bool, out: Path | None = None
) -> ExitCode:
    """Shrink a stream or a recording, print its story and write it; VIOLATION when an answer is wrong.

    `policy`: whose legal orders count, in place of the stream's own. UsageError for files and names.
    """
    suspect()  # an unknown name is said before the file is read
    stream = load_stream(path)
    if policy is not None:
        stream = msgspec.structs.replace(stream, policy=policy)
    trial = check(stream, suspect, suspect.reading)
    if not trial.findings:
        _silent(suspect, stream.events, trial, json_)
        return ExitCode.HELD
    reduced = reduce(stream, trial.findings[0], suspect, suspect.reading)
    told_of = story(suspect.title, suspect, stream, reduced, suspect.reading)
    out = out or path.with_name(f"{path.name.split('.jsonl')[0]}-min.jsonl")
    save_stream(out, reduced.stream)
    if json_:
        click.echo(msgspec.json.encode(told_of))
    else:
        click.echo(f"{told(told_of)}\nThe stream is in {out}; try: tierfuzz shrink {out} {suspect.options}")
    return ExitCode.VIOLATION


def _silent(suspect: Suspect, events: int, trial: Trial, json_: bool) -> None:
    follows = sorted(trial.follows)
    if json_:
        fields = {"consumer": suspect.title, "events": events, "comparisons": trial.comparisons}
        click.echo(msgspec.json.encode({**fields, "kind": "", "follows": follows}))
        return
    reading = " and ".join(follows) or "neither reading alone"
    figures = f"{events} events, {trial.comparisons} answers"
    click.echo(f"{suspect.title}: nothing wrong in {figures}; it follows {reading}")

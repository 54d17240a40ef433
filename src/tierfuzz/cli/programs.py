"""Programs from the command line: a program, a journal, or the folder of a violation; where it runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from tierfuzz.errors import UsageError
from tierfuzz.journal import load_journal
from tierfuzz.program import FleetConfig, Program, load_program
from tierfuzz.report.handover.accused import VERDICTS, load_verdicts
from tierfuzz.report.handover.launch import used_workers
from tierfuzz.report.handover.writer import PROGRAM

Command = TypeVar("Command", bound=Callable[..., Any])
_PLACES = (
    click.option("--engine", default="", help="Run it on another engine than it was written for."),
    click.option("--without-plants", is_flag=True, help="Leave planted faults out: is it the plant?"),
    click.option("--worker", multiple=True, help="URL of a worker that runs already; repeatable."),
    click.option("--events", multiple=True, help="Its events endpoint, where it does not say."),
    click.option("--replay", "replay_", multiple=True, help="Its replay endpoint, where it does not say."),
    click.option("--allow-destructive", is_flag=True, help="Attached workers may be emptied and changed."),
)


def place_options(command: Command) -> Command:
    """Options of where a program runs; placed() reads them."""
    for option in reversed(_PLACES):
        command = option(command)
    return command


def placed(program: Program, given: dict[str, Any]) -> Program:
    """On the workers that the options ask for; a fleet of other sizes is told of."""
    wanted = on_engine(program, given["engine"], given["without_plants"])
    if given["worker"]:
        from tierfuzz.cli.attach import attached_fleet

        where = (given["worker"], given["events"], given["replay_"])
        fleet = attached_fleet(*where, given["engine"] or program.fleet.engine, given["allow_destructive"])
        wanted = on_workers(wanted, fleet)
    for change in changes(program.fleet, wanted.fleet):
        click.echo(f"note: {change}: the program may not reach what it was written for", err=True)
    return wanted


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
    """The same operations on another engine ("": the program's own). Faults, profile, extra arguments and
    running workers belong to the engine that they were written for."""
    fleet = program.fleet
    if engine and engine != fleet.engine:
        own = {"plants": (), "extra_args": (), "profile": "default", "attached": ()}
        fleet = msgspec.structs.replace(fleet, engine=engine, **own)
    if without_plants:
        fleet = msgspec.structs.replace(fleet, plants=())
    return msgspec.structs.replace(program, fleet=fleet)


def on_workers(program: Program, fleet: FleetConfig) -> Program:
    """The same operations on workers that run already; UsageError when they are too few."""
    needed = max(used_workers(program)) + 1
    if fleet.workers < needed:
        raise UsageError(
            f"--worker was given {fleet.workers} times; expected {needed}: the program names workers 0 to "
            f"{needed - 1}"
        )
    return msgspec.structs.replace(program, fleet=fleet)


def changes(was: FleetConfig, now: FleetConfig) -> list[str]:
    """What of the fleet a program may depend on and has changed, for people."""
    names = ("policy", "page_size", "device_tokens", "host_tokens", "storage_threshold")
    pairs = [(name, getattr(was, name), getattr(now, name)) for name in names]
    return [f"{name} {new}, was {old}" for name, old, new in pairs if new != old]

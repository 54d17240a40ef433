"""tierfuzz shrink: the smallest program, or event stream, that still fails."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tierfuzz.cli.programs import place_options
from tierfuzz.errors import ExitCode, UsageError
from tierfuzz.program import WRITE_POLICIES


@click.command(context_settings={"show_default": True})
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option("--oracle", default="", show_default="the first that is violated", help="Which violation.")
@click.option("--budget-runs", type=click.IntRange(1), default=200, help="Most runs of candidates.")
@click.option(
    "--budget-operations", type=click.IntRange(1), default=4000, help="Most operations of all runs."
)
@click.option("--budget-seconds", type=click.FloatRange(0, min_open=True), default=300.0, help="Most time.")
@click.option("--accept", type=click.IntRange(1), default=1, help="Runs of a candidate that have to fail ...")
@click.option(
    "--tries",
    type=click.IntRange(1),
    show_default="by how often the program fails",
    help="... of at most this many.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    show_default="FILE with -min before its ending",
    help="Where the small program is written.",
)
@click.option("--json", "json_", is_flag=True, help="Print one JSON object and nothing else.")
@place_options
@click.option("--consumer", default="", help="FILE is an event stream or a recording: who is wrong on it.")
@click.option("--plant", multiple=True, help="With --consumer: plant a fault in it: a name or file.py:Class.")
@click.option(
    "--policy",
    type=click.Choice(WRITE_POLICIES),
    show_default="the stream's own",
    help="With --consumer: whose legal orders count.",
)
@click.option(
    "--reading",
    type=click.Choice(["either", "counts", "sets"]),
    default="either",
    help="With --consumer: what is right where a block is stored twice.",
)
def shrink(**given: Any) -> None:
    """Make a failing program small (or the last case of a journal, or the folder of a violation).

    With --consumer, make an event stream small on which the consumer gives a wrong answer.

    The search keeps a journal beside --out until it is through, so that the same command goes on where a
    killed one was.

    Exit codes: 1 a violation, shrunk; 0 FIXED, it did not fail; 2 wrong usage, 3 environment, 130 Ctrl-C
    before it failed once.
    """
    sys.exit(int(_shrink(given)))


def _shrink(given: dict[str, Any]) -> ExitCode:
    """By content of the file; imports are late, help should not wait for them."""
    from tierfuzz.orders.files import is_stream

    if given["consumer"]:
        from tierfuzz.cli.shrink_stream import shrink_stream
        from tierfuzz.cli.suspect import Suspect

        who = Suspect(given["consumer"], given["plant"], given["reading"])
        return shrink_stream(given["file"], who, given["policy"], given["json_"], given["out"])
    if given["file"].is_file() and is_stream(given["file"]):
        raise UsageError(f"{given['file']} is an event stream; name who is wrong on it with --consumer")
    from tierfuzz.cli.shrink_program import shrink_program

    return shrink_program(given)

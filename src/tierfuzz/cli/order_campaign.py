"""What `tierfuzz orders` does: one run a policy and family, the minimal stream of every kind of error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from tierfuzz.cli.suspect import Suspect
from tierfuzz.errors import ExitCode, UsageError
from tierfuzz.orderfuzz import OrderRun, fuzz_orders
from tierfuzz.orders.causality import FAMILIES
from tierfuzz.orders.check import check
from tierfuzz.orders.files import save_stream
from tierfuzz.orders.reduce import reduce
from tierfuzz.orders.story import Story, story
from tierfuzz.program import WRITE_POLICIES
from tierfuzz.report.orders import row, told

Stories = list[tuple[Path, Story]]


def execute(given: dict[str, Any]) -> ExitCode:
    """Run all; VIOLATION when the consumer was wrong anywhere."""
    suspect = Suspect(given["consumer"], given["plant"], given["reading"])
    suspect()  # an unknown name is said before anything runs
    runs = []
    for policy in WRITE_POLICIES if given["policy"] == "all" else (given["policy"],):
        for family in ("", *_families(given["family"])):
            run = fuzz_orders(suspect, policy, family, given["max_examples"], given["seed"], suspect.reading)
            stories = list(_stories(suspect, run, given["out"]))
            runs.append(_fields(run, stories))
            if not given["json_"]:
                _show(suspect, run, stories)
    if given["json_"]:
        click.echo(msgspec.json.encode(runs))
    return ExitCode.VIOLATION if any(run["wrong"] for run in runs) else ExitCode.HELD


def _families(wished: tuple[str, ...]) -> tuple[str, ...]:
    if "all" in wished:
        return tuple(FAMILIES)
    if unknown := sorted(set(wished) - set(FAMILIES)):
        raise UsageError(f"--family {', '.join(unknown)}: expected all or some of: {', '.join(FAMILIES)}")
    return wished


def _stories(suspect: Suspect, run: OrderRun, out: Path) -> Iterator[tuple[Path, Story]]:
    """Shrink the first stream of each kind and engine, and write it."""
    for (kind, profile), (stream, finding) in run.first.items():
        reduced = reduce(stream, finding, suspect, suspect.reading)
        before = check(reduced.stream, suspect, suspect.reading).findings[0].kind
        if before != kind and (before, profile) in run.first:
            continue  # what comes of an error that has a stream of its own
        parts = (suspect.title.replace("/", "_"), run.policy, profile, run.family, kind)
        path = out / f"{'-'.join(filter(None, parts))}.jsonl"
        out.mkdir(parents=True, exist_ok=True)
        save_stream(path, reduced.stream)
        yield path, story(suspect.title, suspect, stream, reduced, suspect.reading)


def _fields(run: OrderRun, stories: Stories) -> dict[str, object]:
    return {
        "policy": run.policy,
        "family": run.family,
        "streams": run.streams,
        "events": run.events,
        "comparisons": run.comparisons,
        "follows": sorted(run.follows),
        "wrong": dict(run.wrong),
        "minimal": {str(path): msgspec.to_builtins(told_of) for path, told_of in stories},
    }


def _show(suspect: Suspect, run: OrderRun, stories: Stories) -> None:
    click.echo(row(run))
    for path, told_of in stories:
        click.echo(f"\n{told(told_of)}\nagain: tierfuzz shrink {path} {suspect.options}\n")

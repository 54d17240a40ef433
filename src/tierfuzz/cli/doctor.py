"""tierfuzz doctor: preflight of running workers, or of this machine; one line each, with the cure."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
import msgspec

from tierfuzz.cli.attach import look, nth
from tierfuzz.errors import ExitCode
from tierfuzz.preflight.checks import checks
from tierfuzz.preflight.machine import machine_checks
from tierfuzz.preflight.seen import Check


@click.command()
@click.option("--worker", multiple=True, help="URL of a running worker; repeatable. Default: this machine.")
@click.option("--events", multiple=True, help="Its events endpoint, tcp://…, where it does not say.")
@click.option("--replay", multiple=True, help="Its replay endpoint, where it does not say.")
@click.option("--json", "json_", is_flag=True, help="Print one JSON array and nothing else.")
def doctor(worker: tuple[str, ...], events: tuple[str, ...], replay: tuple[str, ...], json_: bool) -> None:
    """Look at a running worker, or at this machine, before a run.

    A worker is asked what it is, sent one short prompt twice, and listened to; nothing else is changed.
    A key is taken from TIERFUZZ_API_KEY.

    Exit codes: 0 all is well or only proves less, 3 something needed is missing.
    """
    found: list[tuple[str, Check]] = []
    if not worker:
        found += [("this machine", check) for check in machine_checks()]
    for number, url in enumerate(worker):
        seen = look(url, nth(events, number), nth(replay, number))
        found += [(url, check) for check in checks(seen)]
    if json_:
        click.echo(msgspec.json.encode([{"where": where, "check": check} for where, check in found]))
    else:
        _print(found)
    failed = any(check.needed and not check.ok for _, check in found)
    sys.exit(int(ExitCode.ENVIRONMENT if failed else ExitCode.HELD))


def _print(found: Sequence[tuple[str, Check]]) -> None:
    place = ""
    for where, check in found:
        if where != place:
            click.echo(where)
            place = where
        mark = "ok  " if check.ok else "FAIL" if check.needed else "less"
        cure = "" if check.ok or not check.cure else f"; cure: {check.cure}"
        click.echo(f"  {mark} {check.name}: {check.says}{cure}")

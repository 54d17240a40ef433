"""tierfuzz run: a campaign against workers that it starts."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
from hypothesis.configuration import set_hypothesis_home_dir
from rich.console import Console

from tierfuzz.campaign import CampaignConfig, CampaignResult, run_campaign
from tierfuzz.clock import SYSTEM_CLOCK
from tierfuzz.engines.registry import driver_for
from tierfuzz.errors import TierfuzzError, UsageError
from tierfuzz.faults.registry import make_fault
from tierfuzz.journal import Journal
from tierfuzz.model.rules import PROFILES
from tierfuzz.program import WRITE_POLICIES, FleetConfig, dump_program
from tierfuzz.report.progress import Progress
from tierfuzz.report.summary import as_json, print_summary
from tierfuzz.runevents import Listener


@click.command()
@click.option("--engine", default="sim", show_default=True, help="What to test; sim needs nothing else.")
@click.option("--policy", type=click.Choice([*WRITE_POLICIES, "all"]), default="all", show_default=True)
@click.option(
    "--profile",
    type=click.Choice(sorted(PROFILES)),
    default="default",
    show_default=True,
    help="Simulated worker: which version's known defects it has; default: none.",
)
@click.option("--workers", type=click.IntRange(1, 16), default=2, show_default=True)
@click.option("--max-examples", type=click.IntRange(1), default=25, show_default=True, help="Cases a policy.")
@click.option("--steps", type=click.IntRange(2), default=30, show_default=True, help="Operations a case.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same operations.")
@click.option(
    "--plant", multiple=True, help="Plant a fault: a name (see `tierfuzz faults`) or file.py:Class."
)
@click.option("--page-size", type=click.IntRange(1), default=16, show_default=True, help="Tokens a page.")
@click.option("--device-tokens", type=click.IntRange(1), default=1024, show_default=True)
@click.option(
    "--host-ratio",
    type=click.FloatRange(0.1),
    default=3.0,
    show_default=True,
    help="Host pool over device pool.",
)
@click.option("--chunked-prefill-size", type=int, default=8192, show_default=True)
@click.option(
    "--ack-delay-ms",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="Simulated worker: copies land after 0 to this long.",
)
@click.option(
    "--storage-threshold",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Give each worker a storage tier; fewest tokens worth a prefetch (0: none).",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Folder for programs of failing cases, journals, logs, result.json "
    "[default: tierfuzz-out, made only when something fails]",
)
@click.option("--json", "json_", is_flag=True, help="Print one JSON object and nothing else.")
def run(**given: Any) -> None:
    """Fuzz a fleet under one or all write policies.

    Exit codes: 0 every verdict held, 1 violation, 2 wrong usage, 3 environment, 4 vacuous.
    """
    out: Path | None = given["out"]
    logs = Path(tempfile.mkdtemp(prefix="tierfuzz-"))
    set_hypothesis_home_dir(logs / "hypothesis")  # it would leave a folder where the user stands
    console = Console(stderr=given["json_"], quiet=given["json_"])
    try:
        result = run_campaign(campaign_config(given, logs), _listeners(console, logs, given["json_"]))
        print_summary(console, result)
        if given["json_"]:
            click.echo(as_json(result))
        _keep(result, logs, out, console)
    except TierfuzzError as error:
        raise _with_logs(error, logs, out) from error
    finally:
        shutil.rmtree(logs, ignore_errors=True)
    sys.exit(130 if result.interrupted else int(result.exit_code))


def campaign_config(given: dict[str, Any], logs: Path) -> CampaignConfig:
    """Options as a configuration; UsageError before anything is started."""
    driver_for(given["engine"])
    plants = tuple(_plant(name) for name in given["plant"])
    if given["device_tokens"] % given["page_size"]:
        raise UsageError(
            f"--device-tokens {given['device_tokens']} is no multiple of --page-size {given['page_size']}; "
            "choose whole pages"
        )
    fleet = FleetConfig(
        engine=given["engine"],
        workers=given["workers"],
        page_size=given["page_size"],
        device_tokens=given["device_tokens"],
        host_ratio=given["host_ratio"],
        chunked_prefill=given["chunked_prefill_size"],
        profile=given["profile"],
        plants=plants,
        ack_delay_ms=given["ack_delay_ms"],
        storage_threshold=given["storage_threshold"],
        seed=given["seed"],
    )
    policies = WRITE_POLICIES if given["policy"] == "all" else (given["policy"],)
    return CampaignConfig(
        fleet, policies, given["max_examples"], given["steps"], given["seed"], log_dir=logs / "logs"
    )


def _plant(name: str) -> str:
    make_fault(name)  # the workers would fail one by one otherwise
    path, separator, class_name = name.rpartition(":")
    return f"{Path(path).resolve()}:{class_name}" if separator else name


class _PolicyJournals:
    """A journal for each policy of the campaign."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._journal: Journal | None = None

    def on_event(self, event: Any) -> None:
        from tierfuzz.runevents import RunEnded, RunStarted

        if isinstance(event, RunStarted):
            self._journal = Journal(self._folder / f"journal-{event.fleet.policy}.jsonl")
        if self._journal is not None:
            self._journal.on_event(event)
            if isinstance(event, RunEnded):
                self._journal.close()
                self._journal = None


def _listeners(console: Console, folder: Path, quiet: bool) -> list[Listener]:
    listeners: list[Listener] = [_PolicyJournals(folder)]
    if not quiet:
        listeners.append(Progress(console, SYSTEM_CLOCK, live=console.is_terminal))
    return listeners


def _keep(result: CampaignResult, folder: Path, out: Path | None, console: Console) -> None:
    """Copy what is worth keeping; nothing is written for a run that held, unless asked for."""
    failures = [(p.policy, f) for p in result.policies for f in p.failures]
    if out is None and not failures:
        return
    target = out or Path("tierfuzz-out")
    shutil.copytree(folder, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("hypothesis"))
    (target / "result.json").write_bytes(as_json(result) + b"\n")
    for number, (policy, failure) in enumerate(failures, 1):
        (target / f"failure-{number}-{policy}.json").write_bytes(dump_program(failure.program))
    if failures:
        console.print(
            f"Programs and journals are in {target}; try: tierfuzz replay {target}/failure-1-*.json"
        )


def _with_logs(error: TierfuzzError, folder: Path, out: Path | None) -> TierfuzzError:
    target = out or Path("tierfuzz-out")
    shutil.copytree(folder, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("hypothesis"))
    return type(error)(f"{error}\nlogs and journals are in {target}")

"""One campaign from the command line: configure, run, show, and keep what is worth keeping."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import click
from hypothesis.configuration import set_hypothesis_home_dir
from rich.console import Console

from tierfuzz.campaign import CampaignConfig, CampaignResult, run_campaign
from tierfuzz.cli.interrupt import Interrupt
from tierfuzz.clock import SYSTEM_CLOCK
from tierfuzz.engines.registry import driver_for
from tierfuzz.errors import ExitCode, TierfuzzError, UsageError
from tierfuzz.faults.registry import make_fault
from tierfuzz.program import WRITE_POLICIES, FleetConfig, dump_program
from tierfuzz.report.journals import PolicyJournals
from tierfuzz.report.progress import Progress
from tierfuzz.report.summary import as_json, print_summary
from tierfuzz.runevents import Listener

OUT = Path("tierfuzz-out")
FEWEST_PAGES = 8  # on device: the longest answer is over a page long, and a prompt takes two or three
FEWEST_TOKENS = 64  # an engine keeps a few tokens to itself


def execute(given: dict[str, Any]) -> ExitCode:
    """Run what the options of `tierfuzz run` ask for. TierfuzzError when it cannot be run."""
    fleet = fleet_of(given)
    folder = Path(tempfile.mkdtemp(prefix="tierfuzz-"))
    set_hypothesis_home_dir(folder / "hypothesis")  # it would leave a folder where the user stands
    console = Console(quiet=given["json_"])
    try:
        with Interrupt() as interrupt:
            listeners = [interrupt, *_listeners(console, given["out"] or folder)]
            result = run_campaign(_config(given, fleet, folder), listeners)
        print_summary(console, result)
        if given["json_"]:
            click.echo(as_json(result))
        _keep(result, folder, given["out"], console)
    except TierfuzzError as error:
        raise _with_logs(error, folder, given["out"] or OUT) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result.exit_code


def fleet_of(given: dict[str, Any]) -> FleetConfig:
    """The fleet that the options describe; UsageError before anything is started."""
    driver_for(given["engine"])
    for option in ("device_tokens", "chunked_prefill_size"):
        if given[option] > 0 and given[option] % given["page_size"]:
            raise UsageError(
                f"--{option.replace('_', '-')} {given[option]} is no multiple of --page-size "
                f"{given['page_size']}; choose whole pages"
            )
    fewest = max(FEWEST_TOKENS, FEWEST_PAGES * given["page_size"])
    if given["device_tokens"] < fewest:
        raise UsageError(
            f"--device-tokens {given['device_tokens']} with --page-size {given['page_size']}: "
            f"expected at least {fewest} tokens; choose more tokens or smaller pages"
        )
    return FleetConfig(
        engine=given["engine"],
        workers=given["workers"],
        page_size=given["page_size"],
        device_tokens=given["device_tokens"],
        host_ratio=given["host_ratio"],
        chunked_prefill=given["chunked_prefill_size"],
        profile=given["profile"],
        plants=tuple(_plant(name) for name in given["plant"]),
        ack_delay_ms=given["ack_delay_ms"],
        storage_threshold=given["storage_threshold"],
        patience_s=given["patience_s"],
        seed=given["seed"],
        engine_version=given["engine_version"],
        cuda_graphs=given["cuda_graphs"],
        overlap=not given["no_overlap"],
        extra_args=tuple(given["engine_arg"]),
    )


def _plant(name: str) -> str:
    make_fault(name)  # the workers would fail one by one otherwise
    path, separator, class_name = name.rpartition(":")
    return f"{Path(path).resolve()}:{class_name}" if separator else name


def _config(given: dict[str, Any], fleet: FleetConfig, folder: Path) -> CampaignConfig:
    policies = WRITE_POLICIES if given["policy"] == "all" else (given["policy"],)
    return CampaignConfig(
        fleet, policies, given["max_examples"], given["steps"], given["seed"], log_dir=folder / "logs"
    )


def _listeners(console: Console, journals: Path) -> list[Listener]:
    """`journals`: the folder that they are written to as the run goes; a kill leaves them there."""
    listeners: list[Listener] = [PolicyJournals(journals)]
    if not console.quiet:
        listeners.append(Progress(console, SYSTEM_CLOCK, live=console.is_terminal))
    return listeners


def _keep(result: CampaignResult, folder: Path, out: Path | None, console: Console) -> None:
    """Copy what is worth keeping; nothing is written for a run that held, unless asked for."""
    failures = [(policy.policy, failure) for policy in result.policies for failure in policy.failures]
    known = {
        f"known-{defect}-{policy.policy}.json": one.failure.program
        for policy in result.policies
        for defect, one in policy.known.items()
    }
    if out is None and not failures and not known:
        return
    target = out or OUT
    _copy(folder, target)
    (target / "result.json").write_bytes(as_json(result) + b"\n")
    names = [f"failure-{number}-{policy}.json" for number, (policy, _) in enumerate(failures, 1)]
    for name, (_, failure) in zip(names, failures, strict=True):
        (target / name).write_bytes(dump_program(failure.program))
    for name, program in known.items():
        (target / name).write_bytes(dump_program(program))
    if names := [*names, *known]:
        console.print(
            f"Programs and journals are in {target}; try: tierfuzz replay {target / names[0]}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )


def _with_logs(error: TierfuzzError, folder: Path, target: Path) -> TierfuzzError:
    _copy(folder, target)
    return type(error)(f"{error}\nlogs and journals are in {target}")


def _copy(folder: Path, target: Path) -> None:
    shutil.copytree(folder, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("hypothesis"))

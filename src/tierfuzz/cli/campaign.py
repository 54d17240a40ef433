"""One campaign from the command line: configure, run, show, and keep what is worth keeping."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import click
import msgspec
from hypothesis.configuration import set_hypothesis_home_dir
from rich.console import Console

from tierfuzz.campaign import CampaignConfig, run_campaign
from tierfuzz.cli.attach import attached_fleet
from tierfuzz.cli.interrupt import Interrupt
from tierfuzz.cli.keep import keep, kept_programs
from tierfuzz.clock import SYSTEM_CLOCK
from tierfuzz.defects.known import load_known
from tierfuzz.engines.registry import driver_for
from tierfuzz.errors import ExitCode, TierfuzzError, UsageError
from tierfuzz.faults.registry import make_fault
from tierfuzz.model.faults import owners
from tierfuzz.program import WRITE_POLICIES, FleetConfig
from tierfuzz.report.journals import PolicyJournals
from tierfuzz.report.progress import Progress
from tierfuzz.report.summary import as_json, print_summary
from tierfuzz.routers.registry import make_consumer
from tierfuzz.runevents import Listener
from tierfuzz.shrinking import MODEST

OUT = Path("tierfuzz-out")
NOT_EMPTIED = (
    "Attached workers are not emptied: every case sends streams of its own, and says nothing of older blocks."
)
FEWEST_PAGES = 8  # on device: the longest answer is over a page long, and a prompt takes two or three
FEWEST_TOKENS = 64  # an engine keeps a few tokens to itself


def execute(given: dict[str, Any]) -> ExitCode:
    """Run what the options of `tierfuzz run` ask for. TierfuzzError when it cannot be run."""
    fleet = with_consumer(fleet_of(given), given["consumer"])
    folder = Path(tempfile.mkdtemp(prefix="tierfuzz-"))
    set_hypothesis_home_dir(folder / "hypothesis")  # it would leave a folder where the user stands
    console = Console(quiet=given["json_"])
    try:
        if not fleet.starts_empty:
            console.print(NOT_EMPTIED, highlight=False)
        with Interrupt() as interrupt:
            listeners = [interrupt, *_listeners(console, given["out"] or folder)]
            result = run_campaign(_config(given, fleet, folder), listeners)
        print_summary(console, result)
        if given["json_"]:
            click.echo(as_json(result))
        if given["out"] is not None or kept_programs(result):
            _copy(folder, given["out"] or OUT)
            keep(result, given["out"] or OUT, console)
    except TierfuzzError as error:
        raise _with_logs(error, folder, given["out"] or OUT) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result.exit_code


def fleet_of(given: dict[str, Any]) -> FleetConfig:
    """The fleet that the options describe; UsageError before anything is started."""
    driver_for(given["engine"])
    if given["worker"]:
        return attached_fleet(
            given["worker"], given["events"], given["replay"], given["engine"], given["allow_destructive"]
        )
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
        ranks=given["ranks"],
        seed=given["seed"],
        engine_version=given["engine_version"],
        cuda_graphs=given["cuda_graphs"],
        overlap=not given["no_overlap"],
        extra_args=tuple(given["engine_arg"]),
        weights=given["weights"],
        layers=given["layers"],
    )


def with_consumer(fleet: FleetConfig, consumer: str) -> FleetConfig:
    """The same fleet, heard by a consumer ("": by none); UsageError for one that is not there."""
    if consumer:
        make_consumer(consumer)
    for name in fleet.plants if not consumer else ():
        owned = owners(make_fault(name))
        if owned and owned <= {"consumer", "link"}:
            raise UsageError(
                f"--plant {name}: it breaks a consumer, and there is none; add --consumer reference"
            )
    return msgspec.structs.replace(fleet, consumer=consumer)


def _plant(name: str) -> str:
    make_fault(name)  # the workers would fail one by one otherwise
    path, separator, class_name = name.rpartition(":")
    return f"{Path(path).resolve()}:{class_name}" if separator else name


def _config(given: dict[str, Any], fleet: FleetConfig, folder: Path) -> CampaignConfig:
    policies = WRITE_POLICIES if given["policy"] == "all" else (given["policy"],)
    if fleet.attached:
        policies = (fleet.policy,)
    return CampaignConfig(
        fleet,
        policies,
        given["max_examples"],
        given["steps"],
        given["seed"],
        log_dir=folder / "logs",
        shrink=MODEST if given["shrink"] else None,
        known=tuple(entry for name in given["known"] for entry in load_known(name)),
    )


def _listeners(console: Console, journals: Path) -> list[Listener]:
    """`journals`: the folder that they are written to as the run goes; a kill leaves them there."""
    listeners: list[Listener] = [PolicyJournals(journals)]
    if not console.quiet:
        listeners.append(Progress(console, SYSTEM_CLOCK, live=console.is_terminal))
    return listeners


def _with_logs(error: TierfuzzError, folder: Path, target: Path) -> TierfuzzError:
    _copy(folder, target)
    return type(error)(f"{error}\nlogs and journals are in {target}")


def _copy(folder: Path, target: Path) -> None:
    shutil.copytree(folder, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("hypothesis"))

"""The command line of the script: where the workers are, the run, and whether the bug shows."""

from __future__ import annotations

import argparse
import os
import traceback
import uuid
from typing import Any

from tierfuzz.report.handover.script.events import Events, endpoints
from tierfuzz.report.handover.script.operations import Program
from tierfuzz.report.handover.script.run import PAUSE, PAUSE_S, Run, Undecided
from tierfuzz.report.handover.script.worker import Gone, Worker

SHOWN, NOT_SHOWN, NOT_REACHABLE = 1, 0, 3
HEARD_LOOKS = 40
CHECKS: dict[str, Any] = {}


def options(setup: dict[str, Any]) -> argparse.Namespace:
    """Workers in the order of the program; what is not given is asked of /server_info."""
    parser = argparse.ArgumentParser(
        description=f"{setup['title']} Fills the cache of the workers, and empties it first: use workers of "
        "your own. Exits 1 when the bug shows, 0 when it does not, 3 when a worker cannot be reached."
    )
    parser.add_argument("--worker", action="append", help="URL of a worker; once for each of the program's")
    parser.add_argument("--events", action="append", default=[], help="tcp://HOST:PORT of its event socket")
    parser.add_argument("--replay-endpoint", action="append", default=[], help="of its replay socket")
    key = os.environ.get("TIERFUZZ_API_KEY", setup["key"])
    parser.add_argument("--api-key", default=key, help="admin key of the workers (or TIERFUZZ_API_KEY)")
    flush = argparse.BooleanOptionalAction
    parser.add_argument("--flush", action=flush, default=setup["empty"], help="empty the workers first")
    parser.add_argument("--times", type=int, default=5, help="runs at most, until the bug shows (5)")
    given = parser.parse_args()
    given.worker = given.worker or setup["workers"]
    if len(given.worker) != len(setup["workers"]):
        parser.error(f"this program needs {len(setup['workers'])} workers: give --worker as often")
    return given


def connect(given: argparse.Namespace, setup: dict[str, Any]) -> Program:
    """Reach every worker, and its events where it has some; Gone for one that does not answer."""
    workers = [Worker(url, given.api_key, setup["bound_s"] + 5) for url in given.worker]
    events: list[Events | None] = []
    for index, worker in enumerate(workers):
        info = worker.info()
        for problem in differences(info, setup):
            print(f"note: {worker.url} has {problem}: what is expected may not hold")
        live, replay, bind = endpoints(info, worker.url)
        if index < len(given.events):
            live, bind = given.events[index], False
        if index < len(given.replay_endpoint):
            replay = given.replay_endpoint[index]
        if not live:
            print(f"note: {worker.url} publishes no events: nothing of them is checked")
        events.append(Events(live, replay, bind) if live else None)
    return Program({**setup, "empty": given.flush}, workers, events)


def differences(info: dict[str, Any], setup: dict[str, Any]) -> list[str]:
    """Sizes and policy that are not those of the failing run."""
    found = {"page_size": setup["page"], "max_total_num_tokens": setup["device_pages"] * setup["page"]}
    asked = {**found, "hicache_write_policy": setup["policy"]}
    return [f"{key} {info.get(key)}, not {value}" for key, value in asked.items() if info.get(key) != value]


def start(run: Run) -> None:
    """Empty workers, whose events really arrive: a socket that has just been made may miss the first. Those
    that may not be emptied are asked for prompts that they have never seen."""
    run.own = "" if run.setup["empty"] else f"{uuid.uuid4().hex}/"
    for index in range(len(run.workers)):
        for _ in range(HEARD_LOOKS if run.setup["empty"] else 1):
            if run.setup["empty"]:
                run.workers[index].flush(run.setup["bound_s"])
            PAUSE.wait(PAUSE_S)
            if not run.events[index] or run.pull(index, show=False):
                break
        run.rest(index)
        run.books[index].clear()
        run.books[index].odd.clear()
        run.failed.clear()


def judge(run: Run, checks: list[dict[str, Any]]) -> bool:
    """Say of each accusation whether it shows; whether any does."""
    shown = False
    for check in checks:
        try:
            text = verdict(run, check)
        except Undecided as why:
            print(f"{check['oracle']} at {check['at'] or 'rest'}: undecided: {why}")
            continue
        shown = shown or bool(text)
        print(f"{check['oracle']} at {check['at'] or 'rest'}: {'BUG: ' + text if text else 'not seen'}")
    return shown


def verdict(run: Run, check: dict[str, Any]) -> str:
    """What is wrong, or ""."""
    oracle, facts = check["oracle"], {**check["facts"], "worker": check["worker"]}
    if oracle in ("crash", "hang"):
        return "; ".join(text for kind, text in run.failed if kind == oracle)
    if check["by"] == "events":
        if not any(run.events):
            raise Undecided("no events were read")
        return run.odd(oracle)
    if check["by"] == "accounting":
        print(f"{oracle} needs the whole model (tierfuzz replay .); only the accounting is checked here:")
    found: str = CHECKS[check["by"]](run, check["at"], facts)
    return found


def main(setup: dict[str, Any], steps: list[dict[str, Any]], checks: list[dict[str, Any]]) -> int:
    """The exit code."""
    given, shown = options(setup), False
    try:
        for number in range(given.times):
            if given.times > 1:
                print(f"-- run {number + 1} of {given.times}")
            shown = once(connect(given, setup), steps, checks)
            if shown:
                break
    except Gone as error:
        print(f"cannot go on: {error}")
        return NOT_REACHABLE
    except Exception:  # a defect of this script must not look like one of the worker
        traceback.print_exc()
        return NOT_REACHABLE
    print("The bug shows." if shown else "The bug does not show.")
    return SHOWN if shown else NOT_SHOWN


def once(run: Program, steps: list[dict[str, Any]], checks: list[dict[str, Any]]) -> bool:
    """The program once, on emptied workers; Gone when it cannot be carried out and nothing accused shows."""
    try:
        start(run)
        play(run, steps)
        shown = judge(run, checks)
        if run.failed and not shown:
            raise Gone("; ".join(text for _, text in run.failed))
        return shown
    finally:
        for events in run.events:
            if events:
                events.close()


def play(run: Program, steps: list[dict[str, Any]]) -> None:
    """All steps, or until one fails."""
    try:
        for step in steps:
            run.carry_out(step)
            if run.failed:
                return
        run.finish()
    except Gone as error:
        run.failed.append(("crash", str(error)))

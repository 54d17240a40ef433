"""A hand-over does what it says: in an environment of its own, against planted and healthy workers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from tierfuzz.clock import SYSTEM_CLOCK
from tierfuzz.evidence import Evidence, evidence_of
from tierfuzz.fleet import Fleet
from tierfuzz.program import (
    Burst,
    Fill,
    FleetConfig,
    Flush,
    Generate,
    Hold,
    Idle,
    Operation,
    Program,
    Release,
    Restart,
    dump_program,
)
from tierfuzz.prompts import Piece
from tierfuzz.report.handover.repro import repro_text
from tierfuzz.report.handover.steps import BY_EVENTS
from tierfuzz.report.handover.writer import write_handover
from tierfuzz.runner import Runner
from tierfuzz.verdict import Outcome, Verdict
from tierfuzz.worker.http import WorkerClient
from tierfuzz.worker.ports import ReservedPorts
from tierfuzz.worker.process import WorkerProcess
from tierfuzz.worker.readiness import wait_until_healthy

A = (Piece("A", 0, 165),)
PROBE: tuple[Operation, ...] = (
    Generate("op0", 0, A, 2),
    Generate("op1", 0, A, 2, "repeat"),
    Fill("op2", 0, "F", target="op0"),
    Generate("op3", 0, A, 2, "probe"),
)
FAULTS = {
    "host-copy-forgotten": "host-miss",
    "phantom-page": "phantom-hit",
    "first-page-unannounced": "orphan-parent",
}
BOUND_S = 120


def ran(command: Sequence[object], **options: str) -> subprocess.CompletedProcess[str]:
    """A command and what it said."""
    return subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
        env={**os.environ, **options},
    )


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has httpx, pyzmq and msgspec, and nothing of ours."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed: no fresh environment can be made")
    folder = tmp_path_factory.mktemp("bare") / "venv"
    made = ran([uv, "venv", "--quiet", "--python", sys.executable, folder])
    assert made.returncode == 0, made.stderr
    python = folder / "bin" / "python"
    found = ran([uv, "pip", "install", "--quiet", "--python", python, "httpx", "pyzmq", "msgspec"])
    if found.returncode != 0:
        pytest.skip(f"no package index can be reached: {found.stderr.strip().splitlines()[-1]}")
    assert ran([python, "-c", "import tierfuzz"]).returncode != 0
    return python


class Handed(NamedTuple):
    """A hand-over of a program that failed."""

    folder: Path
    verdicts: list[Verdict]


def handed_over(plant: str, folder: Path) -> Handed:
    """Run the program with a fault and hand over what was found."""
    program = Program(FleetConfig(workers=1, host_ratio=3.0, plants=(plant,)), PROBE)
    with Fleet(program.fleet, folder / "logs") as fleet:
        runner = Runner(fleet)
        verdicts = runner.run(program)
        write_handover(folder / "failure-1", program, verdicts, evidence_of(runner.tape))
    return Handed(folder / "failure-1", verdicts)


@contextmanager
def launched(folder: Path, healthy: bool) -> Iterator[str]:
    """The worker of launch.txt at free ports, with its plant or without; its URL."""
    (command,) = re.findall("^python .*$", (folder / "launch.txt").read_text(), re.MULTILINE)
    if healthy:
        command, plants = re.subn(" --sim-plant [^ ]+", "", command)
        assert plants == 1
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with ReservedPorts(3) as ports:
        for meant, free in zip(("30000", "30001", "30002"), ports.numbers, strict=True):
            assert meant in command
            command = command.replace(meant, str(free))
        url = f"http://127.0.0.1:{ports.numbers[0]}"
        process = WorkerProcess(["bash", "-c", f"exec {command}"], folder / "worker.log", {"PATH": path})
        client = WorkerClient(url)
        with process:
            wait_until_healthy(process, client, SYSTEM_CLOCK, BOUND_S)
            yield url
        client.close()


@pytest.mark.parametrize("plant", FAULTS)
def test_the_script_shows_the_bug_by_itself_and_not_on_a_healthy_worker(
    plant: str, bare_python: Path, tmp_path: Path
) -> None:
    folder, verdicts = handed_over(plant, tmp_path)
    assert FAULTS[plant] in {verdict.oracle for verdict in verdicts}
    script: list[str | Path] = [bare_python, "-I", folder / "repro.py", "--worker"]
    with launched(folder, healthy=False) as url:
        shown = ran([*script, url])
    assert shown.returncode == 1, shown.stdout + shown.stderr
    assert re.search(f"^{FAULTS[plant]} at .*: BUG: ", shown.stdout, re.MULTILINE)
    with launched(folder, healthy=True) as url:
        silent = ran([*script, url])
    assert silent.returncode == 0, silent.stdout + silent.stderr
    assert "op3: prompt 165, cached 160 = device 0 + host 160" in silent.stdout
    assert "BUG" not in silent.stdout
    assert "undecided" not in silent.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_chain_of_curl_calls_tells_the_accounting(tmp_path: Path) -> None:
    folder, _ = handed_over("host-copy-forgotten", tmp_path)
    with launched(folder, healthy=True) as url:
        done = ran(["bash", folder / "curl.sh"], W0=url)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no rest within the bound" not in done.stdout
    probe = 'op3: "prompt_tokens":165 "cached_tokens":160 "cached_tokens_details":{"device":0,"host":160}'
    assert probe in done.stdout


def test_the_regression_test_fails_until_the_fault_is_gone(tmp_path: Path) -> None:
    folder, _ = handed_over("phantom-page", tmp_path)
    pytest_of_it = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder]
    failed = ran(pytest_of_it)
    assert failed.returncode == 1, failed.stdout
    assert "phantom-hit at op1 on worker 0" in failed.stdout
    fleet = msgspec.structs.replace(FleetConfig(), workers=1, host_ratio=3.0)
    (folder / "program.json").write_bytes(dump_program(Program(fleet, PROBE)))
    assert ran(pytest_of_it).returncode == 0
    (folder / "program.json").write_bytes(dump_program(Program(fleet, ())))
    unproved = ran(pytest_of_it)
    assert unproved.returncode == 1
    assert "nothing is proved" in unproved.stdout


# the running fleet of all tests --------------------------------------------------------------------
EVERYTHING: tuple[Operation, ...] = (
    *PROBE,
    Burst("b", (Generate("b0", 0, A, 5), Generate("b1", 0, (Piece("C", 0, 90),), 0, abort_after_s=0.0))),
    Generate("g", 0, (*A, Piece("@op0", 0, 2), Piece("T", 0, 5)), 1, "grow"),
    Generate("l", 0, A, 1, "repeat", logprob_start=40),
    Generate("n", 1, A, 2, "namespaced", "tenant"),
    Hold("h", 1),
    Generate("m", 1, (Piece("M", 0, 60),), 2),
    Release("r", 1),
    Idle("i", 1),
    Flush("fl", 0),
    Restart("x", 1),
    Generate("z", 1, A, 2, "repeat"),
)


def script_of(fleet: Fleet, operations: tuple[Operation, ...], tmp_path: Path) -> list[str | Path]:
    """A script that accuses the workers of everything that events can show; to be run by this interpreter."""
    program = Program(fleet.config, operations)
    accused = [Verdict(oracle, Outcome.VIOLATION, 0, "op3", "said") for oracle in sorted(BY_EVENTS)]
    accused += [
        Verdict("host-miss", Outcome.VIOLATION, 0, "op3", "said", facts={"host_only": 160}),
        Verdict("clear-scope", Outcome.VIOLATION, 0, "fl", "said"),
        Verdict("crash", Outcome.VIOLATION, 0, "op3", "said"),
        Verdict("no-backup", Outcome.VIOLATION, 0, "op3", "said"),
        Verdict("pool-levels", Outcome.VIOLATION, 0, "op3", "said"),
        Verdict("unheard-of", Outcome.VIOLATION, 0, "op3", "said"),
        Verdict("leak-at-rest", Outcome.VIOLATION, 1, "z", "said", facts={"gauge": "locked device tokens"}),
    ]
    path = tmp_path / "repro.py"
    path.write_text(repro_text(program, accused, Evidence()))
    return [sys.executable, path, "--times", "1"]


def test_a_healthy_fleet_is_accused_of_nothing_whatever_the_program_does(
    sim_fleet: Fleet, tmp_path: Path
) -> None:
    urls = [word for worker in sim_fleet.workers for word in ("--worker", worker.launch.base_url)]
    done = ran([*script_of(sim_fleet, EVERYTHING, tmp_path), *urls])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("not seen") == len(BY_EVENTS) + 7
    assert all(f"\n{operation.id}" in f"\n{done.stdout}" for operation in EVERYTHING)


def test_endpoints_can_be_given_and_events_left_out(sim_fleet: Fleet, tmp_path: Path) -> None:
    first = sim_fleet.workers[0].launch
    script = [*script_of(sim_fleet, PROBE, tmp_path), "--worker", first.base_url]
    given = ran([*script, "--events", first.events_endpoint, "--replay-endpoint", str(first.replay_endpoint)])
    assert given.returncode == 0, given.stdout + given.stderr
    assert "event #" in given.stdout
    assert ran([*script, "--worker", first.base_url]).returncode == 2


def test_workers_that_may_not_be_emptied_are_not(sim_fleet: Fleet, tmp_path: Path) -> None:
    urls = [word for worker in sim_fleet.workers for word in ("--worker", worker.launch.base_url)]
    script = [*script_of(sim_fleet, EVERYTHING, tmp_path), *urls, "--no-flush"]
    runner = Runner(sim_fleet)
    runner.reset()
    runner.apply(Generate("mine", 0, (Piece("mine", 0, 64),), 1))
    for _ in range(2):  # what the first has left does not mislead the second
        done = ran(script)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "cleared" not in done.stdout
    runner.apply(Generate("again", 0, (Piece("mine", 0, 65),), 1, "repeat"))
    assert runner.tape[-1].observations[0].cached_tokens == 64  # type: ignore[union-attr]


def test_a_worker_that_is_not_there_is_no_verdict(sim_fleet: Fleet, tmp_path: Path) -> None:
    with ReservedPorts(1) as ports:
        nobody = f"http://127.0.0.1:{ports.numbers[0]}"
        done = ran([*script_of(sim_fleet, PROBE, tmp_path), "--worker", nobody])
    assert done.returncode == 3, done.stdout + done.stderr
    assert "cannot go on: GET http://127.0.0.1:" in done.stdout

"""Installs a CPU engine step by step: each is done once, so that an interrupted installation goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tierfuzz.engines.sglang_cpu.environment import CpuEnvironment, State, steps_name
from tierfuzz.engines.sglang_cpu.pins import PYTHONS, TORCH, TRITON, packages
from tierfuzz.errors import EnvironmentFailure, UsageError

GROUP = 12  # packages a step: a step that was cut short is done again
LEAST_FREE_GB = 7.0  # a torch build for GPUs and its libraries; a build for CPUs takes 3
SHOWN_LINES = 15
Say = Callable[[str], None]
Run = Callable[[Sequence[str]], None]
Step = tuple[str, str, Callable[[], None]]


def install(environment: CpuEnvironment, say: Say, run: Run | None = None) -> None:
    """Make the environment complete. `say` is told of every step; `run` runs a command (pip, mostly)."""
    _check_python()
    state = environment.state
    if not state.done:
        environment.remove()
        _check_room(environment.folder)
    steps = list(_steps(environment, run or run_command))
    for number, (name, text, work) in enumerate(steps, 1):
        if name in state.done:
            continue
        say(f"[{number}/{len(steps)}] {text}")
        work()
        state = State(state.version, state.checksum, [*state.done, name])
        environment.write_state(state)
    state.complete = True
    environment.write_state(state)


def _check_python() -> None:
    if sys.version_info[:2] not in PYTHONS:
        known = ", ".join(f"{major}.{minor}" for major, minor in PYTHONS)
        raise UsageError(
            f"Python {sys.version.split()[0]}: the engine's packages are for {known}; run tierfuzz with one"
        )


def _check_room(folder: Path) -> None:
    here = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(here).free / 1e9
    if free < LEAST_FREE_GB:
        raise EnvironmentFailure(
            f"{here}: {free:.1f} GB free, the engine may need {LEAST_FREE_GB:g}; make room, or name another "
            "folder in TIERFUZZ_CACHE"
        )


def _steps(environment: CpuEnvironment, run: Run) -> Iterator[Step]:
    """Name, text and work of every step, in order."""
    python, listed = str(environment.python), packages()
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    venv = [sys.executable, "-m", "venv", "--clear", str(environment.folder / "venv")]

    def probe_triton() -> None:
        if subprocess.run([python, "-c", "import triton"], capture_output=True, check=False).returncode:
            run([*pip, "--no-deps", TRITON])

    yield "venv", f"environment in {environment.folder}", lambda: run(venv)
    constraints = environment.folder / "constraints.txt"

    def torch() -> None:
        constraints.write_text("\n".join(listed))
        run([*pip, "-c", str(constraints), TORCH])

    yield TORCH, f"{TORCH} (the largest part)", torch
    for at in range(0, len(listed), GROUP):
        group = listed[at : at + GROUP]
        text = f"packages {at + 1} to {at + len(group)} of {len(listed)}"
        yield steps_name(group), text, lambda group=group: run([*pip, "--no-deps", *group])  # type: ignore[misc]
    yield TRITON, TRITON, probe_triton
    engine = f"sglang=={environment.version}"
    yield engine, engine, lambda: run([*pip, "--no-deps", engine])
    yield "plugin", "tierfuzz's plugin", environment.place_plugin


def run_command(command: Sequence[str]) -> None:
    """Run to the end; EnvironmentFailure with the last lines of what it said."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    except OSError as error:
        raise EnvironmentFailure(f"cannot run {command[0]}: {error}") from error
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-SHOWN_LINES:])
        raise EnvironmentFailure(
            f"{' '.join(command[:4])} … ended with status {done.returncode}; run the installation again to "
            f"go on where it stopped; its last lines:\n{tail}"
        )

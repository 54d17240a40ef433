"""launch.txt: how to start each worker of a program, with its faults, where the scripts expect it."""

from __future__ import annotations

import shlex
import sys

from tierfuzz.engines.base import Launch
from tierfuzz.engines.registry import driver_of
from tierfuzz.program import Burst, FleetConfig, Program

FIRST_PORT = 30000
PORTS_APART = 10


def used_workers(program: Program) -> list[int]:
    """Workers that some operation names, in order."""
    used: set[int] = set()
    for operation in program.operations:
        if isinstance(operation, Burst):
            used.update(request.worker for request in operation.requests)
        else:
            used.add(operation.worker)
    return sorted(used) or [0]


def launches(program: Program) -> list[Launch]:
    """Launch of each worker that the program uses: at fixed ports, or where it ran already."""
    return [_launch(program.fleet, worker) for worker in used_workers(program)]


def key_of(program: Program) -> str:
    """The admin key of workers that tierfuzz starts; that of others is written down nowhere."""
    return "" if program.fleet.attached else launches(program)[0].api_key or ""


def _launch(fleet: FleetConfig, worker: int) -> Launch:
    driver = driver_of(fleet)
    first = FIRST_PORT + PORTS_APART * worker
    return driver.launch(fleet, worker, list(range(first, first + driver.ports_needed)))


def launch_text(program: Program) -> str:
    """A shell command for each worker; lines that start with # say what it is."""
    fleet = program.fleet
    lines = [f"# Workers of this program: engine {fleet.engine}, {fleet.policy}. Each in a shell of its own."]
    if sys.executable in launches(program)[0].command:
        lines.append("# `python` is one that has tierfuzz (the simulated worker) installed.")
    if fleet.plants:
        lines.append(f"# Faults are planted: {', '.join(fleet.plants)}. Without them the bug must not show.")
    for worker, launch in zip(used_workers(program), launches(program), strict=True):
        lines += ["", f"# worker {worker}: {launch.base_url}"]
        lines.append(_command(launch, fleet) if launch.command else _attached_text(fleet))
    return "\n".join(lines) + "\n"


def _attached_text(fleet: FleetConfig) -> str:
    return (
        f"# It ran already: start it as its owner does, with pages of {fleet.page_size} tokens, "
        f"{fleet.device_tokens} tokens on device, host ratio {fleet.host_ratio:g}, {fleet.policy}."
    )


def _command(launch: Launch, fleet: FleetConfig) -> str:
    words = ["python" if word == sys.executable else shlex.quote(word) for word in launch.command]
    env = [f"{name}={shlex.quote(value)}" for name, value in sorted(launch.env.items())]
    if fleet.storage_threshold:
        env.append(f'{driver_of(fleet).storage_variable}="$(mktemp -d)"')
    return " ".join([*env, *words])

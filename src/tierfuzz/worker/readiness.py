"""Waits until a worker that was started answers, and notices at once when it died."""

from __future__ import annotations

from tierfuzz.clock import Clock
from tierfuzz.errors import WorkerDied, WorkerNotReady
from tierfuzz.worker.http import WorkerClient
from tierfuzz.worker.process import WorkerProcess

FIRST_WAIT_S = 0.01
LONGEST_WAIT_S = 0.5


def wait_until_healthy(process: WorkerProcess, client: WorkerClient, clock: Clock, bound_s: float) -> None:
    """Return when /health answers; WorkerDied or WorkerNotReady carry the tail of the log."""
    deadline, wait = clock.monotonic() + bound_s, FIRST_WAIT_S
    while not client.healthy():
        if not process.alive():
            raise WorkerDied(
                f"{process.command[0]} ended with status {process.status} before it was ready; "
                f"log {process.log_path}:\n{process.log_tail()}"
            )
        if clock.monotonic() >= deadline:
            raise WorkerNotReady(
                f"{client.base_url} was not healthy within {bound_s} s; "
                f"log {process.log_path}:\n{process.log_tail()}"
            )
        clock.sleep(wait)
        wait = min(2 * wait, LONGEST_WAIT_S)

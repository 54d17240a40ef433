"""Waits until a worker that was started answers, and notices at once when it died."""

from __future__ import annotations

from typing import Any

from tierfuzz.clock import Clock
from tierfuzz.errors import RequestFailed, WorkerNotReady
from tierfuzz.worker.attached import AttachedProcess
from tierfuzz.worker.http import WorkerClient
from tierfuzz.worker.process import WorkerProcess

FIRST_WAIT_S = 0.005
LONGEST_WAIT_S = 0.1
EXCHANGE_BOUND_S = 5.0


def wait_until_healthy(
    process: WorkerProcess | AttachedProcess, client: WorkerClient, clock: Clock, bound_s: float
) -> dict[str, Any]:
    """Wait for /server_info, then /health; returns the info.

    WorkerDied at once when the process ends, WorkerNotReady after `bound_s` seconds; both carry the log tail.
    """
    deadline, wait = clock.monotonic() + bound_s, FIRST_WAIT_S
    while True:
        info, reason = _ask(client, max(0.1, min(EXCHANGE_BOUND_S, deadline - clock.monotonic())))
        process.check_alive()  # also after an answer: a stranger at the port must not count
        if info is not None:
            return info
        if clock.monotonic() >= deadline:
            raise WorkerNotReady(
                f"{client.base_url} was not healthy within {bound_s:g} s ({reason}); {process.told()}"
            )
        clock.sleep(wait)
        wait = min(2 * wait, LONGEST_WAIT_S)


def _ask(client: WorkerClient, bound_s: float) -> tuple[dict[str, Any] | None, str]:
    try:
        info = client.server_info(bound_s)
    except RequestFailed as error:
        return None, str(error)
    return (info, "") if client.healthy(bound_s) else (None, "/health did not answer 200")

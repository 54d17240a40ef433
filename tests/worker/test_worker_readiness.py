"""Waiting for a worker to become healthy: at once when it is, at once when it dies, bounded otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import BOUND_S, wait_for
from web_server import WebServer, serving

from tierfuzz.clock import SYSTEM_CLOCK
from tierfuzz.errors import WorkerDied, WorkerNotReady
from tierfuzz.worker.http import WorkerClient
from tierfuzz.worker.ports import reserve_ports
from tierfuzz.worker.process import WorkerProcess
from tierfuzz.worker.readiness import wait_until_healthy

LOADS = "import time; print('loading', flush=True); time.sleep(600)"
DIES = "print('out of memory', flush=True); raise SystemExit(4)"


@pytest.fixture
def web() -> Iterator[WebServer]:
    """A server that answers as a healthy worker does."""
    with serving() as server:
        server.always("/server_info", 200, {"page_size": 16})
        server.always("/health", 200)
        yield server


@pytest.fixture
def client(web: WebServer) -> Iterator[WorkerClient]:
    """A client of it."""
    client = WorkerClient(web.base_url)
    yield client
    client.close()


def process(tmp_path: Path, code: str) -> WorkerProcess:
    """A process that is no server at all."""
    return WorkerProcess([sys.executable, "-c", code], tmp_path / "log")


def test_a_healthy_worker_is_ready_and_its_info_is_returned(tmp_path: Path, client: WorkerClient) -> None:
    with process(tmp_path, LOADS) as worker:
        assert wait_until_healthy(worker, client, SYSTEM_CLOCK, BOUND_S) == {"page_size": 16}


def test_a_starting_worker_is_waited_for(tmp_path: Path, web: WebServer, client: WorkerClient) -> None:
    states = iter([503, 503, 503, 200])
    web.answers["/health"] = lambda _: (next(states), b"")
    with process(tmp_path, LOADS) as worker:
        wait_until_healthy(worker, client, SYSTEM_CLOCK, BOUND_S)
    assert [seen.path for seen in web.seen] == ["/server_info", "/health"] * 4


def test_a_dead_process_is_noticed_at_once_with_status_and_log(tmp_path: Path) -> None:
    worker = process(tmp_path, DIES)
    worker.start()
    with reserve_ports(1) as ports:
        client = WorkerClient(f"http://127.0.0.1:{ports.numbers[0]}")
        # far more than any test may take: only its death ends the waiting
        with pytest.raises(WorkerDied) as told:
            wait_until_healthy(worker, client, SYSTEM_CLOCK, 10_000.0)
        client.close()
    assert worker.stop() == 4
    assert "exit status 4" in str(told.value)
    assert "out of memory" in str(told.value)


def test_a_stranger_that_answers_for_a_dead_process_does_not_count(
    tmp_path: Path, client: WorkerClient
) -> None:
    worker = process(tmp_path, DIES)
    worker.start()
    wait_for("its end", lambda: not worker.alive())
    with pytest.raises(WorkerDied, match="is not running"):
        wait_until_healthy(worker, client, SYSTEM_CLOCK, BOUND_S)
    worker.stop()


def not_ready(worker: WorkerProcess, client: WorkerClient) -> str:
    """The message of a worker that does not become ready within its bound."""
    with worker:
        wait_for("its first line", lambda: "loading" in worker.log_tail())
        with pytest.raises(WorkerNotReady) as told:
            wait_until_healthy(worker, client, SYSTEM_CLOCK, 0.05)
    return str(told.value)


def test_a_worker_that_does_not_listen_is_told_with_bound_reason_and_log(tmp_path: Path) -> None:
    with reserve_ports(1) as ports:
        client = WorkerClient(f"http://127.0.0.1:{ports.numbers[0]}")
        message = not_ready(process(tmp_path, LOADS), client)
        client.close()
    assert f"127.0.0.1:{ports.numbers[0]} was not healthy within 0.05 s" in message
    assert "unreachable" in message
    assert "loading" in message


def test_a_worker_that_stays_unhealthy_is_told(tmp_path: Path, web: WebServer, client: WorkerClient) -> None:
    web.always("/health", 503)
    assert "/health did not answer 200" in not_ready(process(tmp_path, LOADS), client)

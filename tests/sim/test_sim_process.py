"""The worker as a process: readiness, signals, errors at start, crashes."""

from __future__ import annotations

import signal
import socket
import threading
from pathlib import Path

import httpx
import psutil
import pytest
from sim_process import BOUND_S, PAGE, body, running, started, tokens, wait_for


def can_bind(endpoint: str) -> bool:
    """Whether a TCP endpoint is free again."""
    host, _, port = endpoint.rpartition("//")[2].rpartition(":")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except OSError:
            return False
    return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_status_0_and_leaves_nothing(number: signal.Signals) -> None:
    with running() as sim:
        listening = {
            c.laddr.port: c.laddr.ip for c in psutil.Process(sim.process.pid).net_connections("tcp4")
        }
        endpoints = [str(sim.http.base_url).rstrip("/"), sim.events, sim.replay]
        ports = {int(endpoint.rpartition(":")[2]) for endpoint in endpoints}
        assert {port: listening.get(port) for port in ports} == dict.fromkeys(ports, "127.0.0.1")
        assert psutil.Process(sim.process.pid).children() == []
        sim.process.send_signal(number)
        assert sim.process.wait(BOUND_S) == 0
        assert [endpoint for endpoint in endpoints if not can_bind(endpoint)] == []


def test_a_request_that_cannot_end_does_not_hold_up_the_end() -> None:
    with running() as sim:
        sim.control("hold")
        url = f"{sim.http.base_url}/generate"
        sim.generate(tokens("a", 900))  # its backup is held, so its pages stay pinned
        answers: list[int] = []

        def wait() -> None:
            answers.append(httpx.post(url, json=body(tokens("b", 900)), timeout=BOUND_S).status_code)

        waiting = threading.Thread(target=wait)
        waiting.start()
        wait_for("a waiting request", lambda: sim.metric("num_queue_reqs") == 1)
        sim.process.terminate()
        assert sim.process.wait(BOUND_S) == 0
        waiting.join(BOUND_S)
        assert answers == [503]


@pytest.mark.parametrize(
    ("flags", "status", "reason"),
    [
        (["--no-such-flag"], 2, "No such option"),
        (["--sim-plant", "no-such-fault"], 2, "no-backup"),
        (
            ['--kv-events-config={"publisher":"zmq","endpoint":"tcp://*:port"}'],
            3,
            "cannot bind event endpoint",
        ),
        (['--kv-events-config={"publisher":"zmq","endpoint":"tcp://1.2.3.4:5557"}'], 2, "loopback"),
    ],
)
def test_errors_at_start_are_one_line_with_a_status(flags: list[str], status: int, reason: str) -> None:
    with started(*flags) as (process, log):
        assert process.wait(BOUND_S) == status
        text = log.read_text()
        assert reason in text
        assert "Traceback" not in text


def test_a_taken_port_is_an_environment_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with started(f"--port={taken.getsockname()[1]}") as (process, log):
            assert process.wait(BOUND_S) == 3
            assert "choose a free --port" in log.read_text()


def test_a_crash_of_the_engine_ends_the_process_with_its_reason_in_the_log() -> None:
    with started("--sim-plant=dies-on-load-back") as (process, log):
        line = wait_for("readiness", lambda: [x for x in log.read_text().splitlines() if "sim ready" in x])[0]
        with httpx.Client(base_url=line.split()[3], timeout=BOUND_S) as client:
            prefix = {"input_ids": tokens("a", 4 * PAGE + 1), "sampling_params": {"max_new_tokens": 0}}
            assert client.post("/generate", json=prefix).status_code == 200
            for stream in ("f1", "f2"):
                filler = {"input_ids": tokens(stream, 960), "sampling_params": {"max_new_tokens": 0}}
                assert client.post("/generate", json=filler).status_code == 200
            with pytest.raises(httpx.TransportError):
                client.post("/generate", json=prefix)
        assert process.wait(BOUND_S) == 3
        assert "load-back of 4 pages" in log.read_text()


def test_a_fault_of_a_users_file_is_planted(tmp_path: Path) -> None:
    source = tmp_path / "mine.py"
    source.write_text(
        "from tierfuzz.model.faults import Fault\n\n\n"
        "class Silent(Fault):\n"
        "    def outgoing(self, engine, inner, events):\n"
        "        return []\n"
    )
    with running(f"--sim-plant={source}:Silent") as sim:
        assert sim.http.get("/server_info").json()["sim"]["plants"] == [f"{source}:Silent"]
        sim.generate(tokens("a", PAGE))
        assert sim.flush() == 200
        assert sim.happened(1) == []  # batches leave, but what is in them was taken out


def test_a_crash_in_a_control_call_is_a_crash_too(tmp_path: Path) -> None:
    source = tmp_path / "mine.py"
    source.write_text(
        "from tierfuzz.model.faults import Fault\n\n\n"
        "class FlushFails(Fault):\n"
        "    def flush(self, engine, inner):\n"
        "        raise AssertionError('pool is not empty')\n"
    )
    with running(f"--sim-plant={source}:FlushFails") as sim:
        with pytest.raises(httpx.TransportError):
            sim.flush()
        assert sim.process.wait(BOUND_S) == 3

"""Port reservations: held against everybody but the worker, given back, disjoint between processes."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import zmq

from tierfuzz.clock import FakeClock
from tierfuzz.errors import EnvironmentFailure
from tierfuzz.worker import ports as ports_module
from tierfuzz.worker.ports import LOOPBACK, reserve_ports


@contextmanager
def bound(port: int, reuse: bool) -> Iterator[socket.socket]:
    """A socket bound to a port, as a server does it or as a stranger."""
    with socket.socket() as taker:
        taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(reuse))
        taker.bind((LOOPBACK, port))
        yield taker


def test_a_worker_can_listen_on_a_held_port_again_and_again() -> None:
    with reserve_ports(1) as ports:
        for _ in range(3):
            with bound(ports.numbers[0], reuse=True) as server:
                server.listen()
                with socket.create_connection((LOOPBACK, ports.numbers[0]), 5):
                    server.accept()[0].close()


def test_an_event_socket_can_bind_a_held_port() -> None:
    with reserve_ports(1) as ports, zmq.Context() as context, context.socket(zmq.PUB) as publisher:
        publisher.bind(f"tcp://{LOOPBACK}:{ports.numbers[0]}")


def test_a_stranger_cannot_take_a_held_port() -> None:
    with (
        reserve_ports(1) as ports,
        pytest.raises(OSError, match="in use"),
        bound(ports.numbers[0], reuse=False),
    ):
        pass


def test_a_closed_reservation_gives_its_ports_back_and_still_knows_them() -> None:
    with reserve_ports(3) as ports:
        pass
    assert len(ports.numbers) == 3
    for number in ports.numbers:
        with bound(number, reuse=False):
            pass


def test_two_processes_reserving_at_once_never_share_a_port() -> None:
    code = (
        "import sys; from tierfuzz.worker.ports import reserve_ports\n"
        "ports = reserve_ports(200); print(*ports.numbers, flush=True); sys.stdin.read(); ports.close()"
    )
    command = [sys.executable, "-c", code]
    with reserve_ports(200) as ours:
        others = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        taken = list(ours.numbers)
        for other in others:
            assert other.stdout is not None
            taken += map(int, other.stdout.readline().split())
        for other in others:
            other.communicate()
            assert other.returncode == 0
    assert len(taken) == len(set(taken)) == 600


def test_no_ports_is_an_environment_failure_and_nothing_stays_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ports_module._hold
    given: list[socket.socket] = []

    def two_then_none() -> socket.socket:
        if len(given) == 2:
            raise OSError(24, "Too many open files")
        given.append(real())
        return given[-1]

    monkeypatch.setattr(ports_module, "_hold", two_then_none)
    with pytest.raises(EnvironmentFailure, match=r"cannot reserve 3 ports on 127\.0\.0\.1: .*Too many"):
        reserve_ports(3)
    assert [held.fileno() for held in given] == [-1, -1]


# after a kill (T56) --------------------------------------------------------------------------------
LISTENER = (
    "import socket, sys\n"
    "held = socket.socket(); held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
    "held.bind(('127.0.0.1', int(sys.argv[1]))); held.listen(); print('up', flush=True); sys.stdin.read()"
)


@contextmanager
def left_over(port: int) -> Iterator[subprocess.Popen[str]]:
    """A process that a killed worker has left behind, listening on its port until its input ends."""
    command = [sys.executable, "-c", LISTENER, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        yield process


class Waiting(FakeClock):
    """Each sleep is a step of the clock; after some the process that is left ends."""

    def __init__(self, process: subprocess.Popen[str], after: int) -> None:
        super().__init__()
        self.process = process
        self.left = after

    def sleep(self, seconds: float) -> None:
        """Advance; let the process go when its time has come."""
        super().sleep(seconds)
        self.left -= 1
        if self.left == 0:
            self.process.communicate()


def test_ports_of_a_worker_that_is_gone_are_free_at_once() -> None:
    with reserve_ports(2) as ports:
        clock = FakeClock()
        ports.wait_until_free(clock, 1.0, "worker 0")
        assert (ports.taken(), clock.monotonic()) == ([], FakeClock().monotonic())


def test_a_start_waits_for_a_port_that_a_killed_worker_still_has() -> None:
    with reserve_ports(2) as ports, left_over(ports.numbers[1]) as process:
        assert ports.taken() == ports.numbers[1:]
        ports.wait_until_free(Waiting(process, after=5), 60.0, "worker 0")
        assert process.returncode == 0
        assert ports.taken() == []


def test_a_port_that_does_not_come_back_is_laid_to_the_worker_that_had_it() -> None:
    with reserve_ports(2) as ports, left_over(ports.numbers[0]):
        message = rf"worker 3: ports {ports.numbers[0]} are in use 2 s after its process ended"
        with pytest.raises(EnvironmentFailure, match=message):
            ports.wait_until_free(FakeClock(), 2.0, "worker 3")


def test_ports_for_ranks_stand_in_a_row_and_are_all_held() -> None:
    with reserve_ports(2, run=3) as ports:
        assert len(ports.numbers) == 2
        for first in ports.numbers:
            for number in range(first, first + 3):
                with pytest.raises(OSError, match="in use"), bound(number, reuse=False):
                    pass
        with left_over(ports.numbers[1] + 2):
            assert ports.taken() == [ports.numbers[1] + 2]

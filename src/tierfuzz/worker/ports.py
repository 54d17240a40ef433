"""Ports that stay ours: bound but not listening, so that only a child that shares them can listen."""

from __future__ import annotations

import socket
from types import TracebackType

from tierfuzz.clock import Clock
from tierfuzz.errors import EnvironmentFailure

LOOPBACK = "127.0.0.1"
MOST_TRIES = 100
FIRST_WAIT_S, LONGEST_WAIT_S = 0.005, 0.25


class ReservedPorts:
    """`count` free loopback ports, held until close(), also while a worker uses or restarts on them.

    With `run`, each of `numbers` is the first of so many ports in a row, for the ranks of a worker.

    Both sides set SO_REUSEADDR, so the worker can bind and listen while the reservation stays bound. The
    kernel gives a bound port to nobody who asks for any port, neither for listening nor for connecting: no
    gap is left between choosing and using, and nothing is left behind if this process is killed.
    """

    def __init__(self, count: int, run: int = 1) -> None:
        self._held: list[socket.socket] = []
        try:
            for _ in range(count):
                self._held += _hold_run(run)
        except OSError as error:
            self.close()
            raise EnvironmentFailure(
                f"cannot reserve {count} ports on {LOOPBACK}: {error}; "
                "close what holds so many ports or files"
            ) from error
        self.numbers = [int(held.getsockname()[1]) for held in self._held[::run]]
        self._all = [int(held.getsockname()[1]) for held in self._held]

    def taken(self) -> list[int]:
        """Those of the ports at which somebody listens."""
        return [number for number in self._all if not _free(number)]

    def wait_until_free(self, clock: Clock, bound_s: float, who: str) -> None:
        """Wait until nobody listens any more, at most `bound_s` seconds; EnvironmentFailure names `who` did.

        A killed process can keep its sockets for a while: until then a new one would be blamed for them.
        """
        deadline, wait = clock.monotonic() + bound_s, FIRST_WAIT_S
        while taken := self.taken():
            if clock.monotonic() >= deadline:
                raise EnvironmentFailure(
                    f"{who}: ports {', '.join(map(str, taken))} are in use {bound_s:g} s after its process "
                    "ended; something of it is left, see ss -ltnp"
                )
            clock.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT_S)

    def close(self) -> None:
        """Give the ports back; the numbers stay readable."""
        while self._held:
            self._held.pop().close()

    def __enter__(self) -> ReservedPorts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def reserve_ports(count: int, run: int = 1) -> ReservedPorts:
    """Reserve `count` free ports of 127.0.0.1; EnvironmentFailure when there are not so many."""
    return ReservedPorts(count, run)


def _free(number: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, number))
            probe.listen()
        except OSError:
            return False
    return True


def _hold_run(run: int) -> list[socket.socket]:
    """`run` ports in a row, the first of them any."""
    for _ in range(MOST_TRIES):
        held = [_hold()]
        first = int(held[0].getsockname()[1])
        try:
            held.extend(map(_hold, range(first + 1, first + run)))
        except (OSError, OverflowError):
            for one in held:
                one.close()
        else:
            return held
    raise OSError(f"no {run} free ports in a row")


def _hold(number: int = 0) -> socket.socket:
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((LOOPBACK, number))
    except OSError:
        held.close()
        raise
    return held

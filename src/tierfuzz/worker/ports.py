"""Ports that stay ours: bound but not listening, so that only a child that shares them can listen."""

from __future__ import annotations

import socket
from types import TracebackType

from tierfuzz.clock import Clock
from tierfuzz.errors import EnvironmentFailure

LOOPBACK = "127.0.0.1"
FIRST_WAIT_S, LONGEST_WAIT_S = 0.005, 0.25


class ReservedPorts:
    """`count` free loopback ports, held until close(), also while a worker uses or restarts on them.

    Both sides set SO_REUSEADDR, so the worker can bind and listen while the reservation stays bound. The
    kernel gives a bound port to nobody who asks for any port, neither for listening nor for connecting: no
    gap is left between choosing and using, and nothing is left behind if this process is killed.
    """

    def __init__(self, count: int) -> None:
        self._held: list[socket.socket] = []
        try:
            for _ in range(count):
                self._held.append(_hold())
        except OSError as error:
            self.close()
            raise EnvironmentFailure(
                f"cannot reserve {count} ports on {LOOPBACK}: {error}; "
                "close what holds so many ports or files"
            ) from error
        self.numbers = [int(held.getsockname()[1]) for held in self._held]

    def taken(self) -> list[int]:
        """Those of the ports at which somebody listens."""
        return [number for number in self.numbers if not _free(number)]

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


def reserve_ports(count: int) -> ReservedPorts:
    """Reserve `count` free ports of 127.0.0.1; EnvironmentFailure when there are not so many."""
    return ReservedPorts(count)


def _free(number: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, number))
            probe.listen()
        except OSError:
            return False
    return True


def _hold() -> socket.socket:
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((LOOPBACK, 0))
    except OSError:
        held.close()
        raise
    return held

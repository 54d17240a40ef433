"""Ports that stay ours: bound but not listening, so that only a child that shares them can listen."""

from __future__ import annotations

import socket

from tierfuzz.errors import EnvironmentFailure

LOOPBACK = "127.0.0.1"


class ReservedPorts:
    """`count` free loopback ports, held until close().

    Both sides set SO_REUSEADDR, so the worker can bind and listen while the reservation stays bound; nobody
    else is given the port meanwhile, which leaves no gap between choosing and using it.
    """

    def __init__(self, count: int) -> None:
        self._held: list[socket.socket] = []
        try:
            for _ in range(count):
                self._held.append(_hold())
        except OSError as error:
            self.close()
            raise EnvironmentFailure(f"no {count} free ports on {LOOPBACK}: {error}") from error

    @property
    def numbers(self) -> list[int]:
        """The port numbers."""
        return [int(held.getsockname()[1]) for held in self._held]

    def close(self) -> None:
        """Give the ports back."""
        while self._held:
            self._held.pop().close()


def _hold() -> socket.socket:
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((LOOPBACK, 0))
    return held

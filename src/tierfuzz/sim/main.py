"""The server process: sockets, signals, the readiness line, a clean end or an honest crash."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from types import FrameType

import uvicorn

from tierfuzz.errors import EnvironmentFailure, ExitCode
from tierfuzz.sim.app import build_app
from tierfuzz.sim.config import SimOptions
from tierfuzz.sim.rank import Rank
from tierfuzz.sim.state import SimWorker

READY = "tierfuzz sim ready"
KEEP_ALIVE_S = 3600  # a pool of idle connections must not meet a close at the moment it is used
_log = logging.getLogger("tierfuzz.sim")


def serve(options: SimOptions) -> int:
    """Run one worker until SIGTERM or SIGINT; returns the exit status. Usage and port errors are raised."""
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s", level="INFO")
    with _listening(options) as listener:
        asyncio.run(_serve(options, listener))
    return ExitCode.HELD


class _Server(uvicorn.Server):
    """Tells the worker when the server starts to end, so that open requests do not hold it up."""

    def __init__(self, config: uvicorn.Config, worker: SimWorker, listener: socket.socket) -> None:
        super().__init__(config)
        self._worker = worker
        self._listener = listener

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then print the one line that a launcher may wait for."""
        await super().startup(sockets)
        if self.started:
            print(_ready_line(self._worker, self._listener), flush=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Fail what is open, then end as usual."""
        for rank in self._worker.ranks:
            rank.scheduler.stop()
        await super().shutdown(sockets)

    def request_exit(self, number: int, frame: FrameType | None) -> None:
        """A signal handler for the time before and after uvicorn has its own."""
        del number, frame
        self.should_exit = True


async def _serve(options: SimOptions, listener: socket.socket) -> None:
    worker = SimWorker(options)
    worker.port = listener.getsockname()[1]
    config = uvicorn.Config(
        build_app(worker),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config, worker, listener)
    # uvicorn raises a signal again once it has ended; without these handlers it would kill the process.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, server.request_exit)
    loops = [_run(rank) for rank in worker.ranks]
    try:
        await server.serve(sockets=[listener])
    finally:
        for loop in loops:
            loop.cancel()
        worker.close()


def _run(rank: Rank) -> asyncio.Task[None]:
    if rank.publisher is not None:
        rank.publisher.start()
    loop = asyncio.get_running_loop().create_task(rank.scheduler.run())
    loop.add_done_callback(_crash)
    return loop


def _crash(loop: asyncio.Task[None]) -> None:
    """The engine failed: leave at once, with requests unanswered, as the real process does."""
    if loop.cancelled() or loop.exception() is None:
        return
    _log.critical("the scheduler died", exc_info=loop.exception())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(ExitCode.ENVIRONMENT)


@contextlib.contextmanager
def _listening(options: SimOptions) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    # With the protocol named, asyncio turns off Nagle on accepted connections; without, a reply waits 40 ms.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((options.host, options.port))
        except OSError as error:
            raise EnvironmentFailure(
                f"cannot listen on {options.host}:{options.port}: {error.strerror}; choose a free --port"
            ) from error
        yield listener


def _ready_line(worker: SimWorker, listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    line = f"{READY} http://{shown}:{port}"
    if worker.publisher is not None:
        line += f" events {worker.publisher.endpoint}"
        if worker.publisher.replay_endpoint is not None:
            line += f" replay {worker.publisher.replay_endpoint}"
    return line

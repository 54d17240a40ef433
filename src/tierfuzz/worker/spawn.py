"""Starts children from one thread that lasts, because the kernel ends a guarded child with its *thread*."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import BinaryIO

from tierfuzz.worker import guard

_Job = tuple[Sequence[str], BinaryIO, Mapping[str, str], "Future[subprocess.Popen[bytes]]"]


class _Spawner(threading.Thread):
    """A daemon thread: it ends when the process does, and with it every child that it started."""

    def __init__(self) -> None:
        super().__init__(name="tierfuzz-spawner", daemon=True)
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()

    def run(self) -> None:
        """Start what is asked for, for ever."""
        while True:
            command, log, environment, done = self._jobs.get()
            try:
                done.set_result(_popen(command, log, environment))
            except BaseException as error:
                done.set_exception(error)

    def spawn(
        self, command: Sequence[str], log: BinaryIO, environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        """Have the thread start a child, and wait for it."""
        done: Future[subprocess.Popen[bytes]] = Future()
        self._jobs.put((command, log, environment, done))
        return done.result()


_lock = threading.Lock()
_spawner: _Spawner | None = None


def spawn(command: Sequence[str], log: BinaryIO, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start `command` in a session of its own, both output streams going to `log`; OSError if it cannot.

    The child gets SIGKILL from the kernel when this process ends, however that happens. A command that does
    not exist ends with status 127 and a line in the log.
    """
    global _spawner
    with _lock:
        if _spawner is None or not _spawner.is_alive():  # not alive: this process is a fork
            _spawner = _Spawner()
            _spawner.start()
        thread = _spawner
    return thread.spawn(command, log, environment)


def _popen(command: Sequence[str], log: BinaryIO, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    guarded = [sys.executable, "-I", "-S", guard.__file__, str(os.getpid()), *command]
    return subprocess.Popen(
        guarded,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    )

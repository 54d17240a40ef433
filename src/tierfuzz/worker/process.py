"""A worker process: a session of its own, a log file, a tree that ends as a whole, nothing left behind."""

from __future__ import annotations

import atexit
import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import psutil

from tierfuzz.errors import EnvironmentFailure, WorkerDied
from tierfuzz.worker.logs import LogFile
from tierfuzz.worker.spawn import spawn

TAIL_LINES = 20
KILL_WAIT_S = 60.0  # the system may take half a minute to give a large pinned host pool back (T56)
_live: dict[int, WorkerProcess] = {}


class WorkerProcess:
    """One child at a time; start() again after it ended. It never outlives this process.

    Output goes to `log_path`, since a pipe that nobody reads would stop the child. As a context manager it is
    stopped at the end, and the log is removed if all went well.
    """

    def __init__(self, command: Sequence[str], log_path: Path, env: Mapping[str, str] | None = None) -> None:
        self.command = list(command)
        self.log_path = log_path
        self._log = LogFile(log_path)
        self._env = dict(env or {})
        self._child: subprocess.Popen[bytes] | None = None

    # life ------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Start the child; EnvironmentFailure when the operating system refuses."""
        if self._child is not None and self._child.returncode is None:
            raise EnvironmentFailure(f"{self.name} was started already; stop it first")
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", **self._env}
        try:
            with self._log.open() as log:
                self._child = spawn(self.command, log, environment)
        except OSError as error:
            raise EnvironmentFailure(f"cannot start {self.command[0]}: {error}") from error
        _live[self._child.pid] = self

    def stop(self, grace_s: float = 5.0) -> int | None:
        """SIGTERM, wait `grace_s` seconds, then SIGKILL whatever is left of the tree; the exit status."""
        return self._end(signal.SIGTERM, grace_s)

    def kill(self) -> int | None:
        """SIGKILL the whole tree at once; the exit status."""
        return self._end(signal.SIGKILL, 0.0)

    def pause(self) -> None:
        """SIGSTOP to every process of the session; resume() heals it."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT to every process of the session."""
        self._signal(signal.SIGCONT)

    # what is known ---------------------------------------------------------------------------------
    @property
    def pid(self) -> int:
        """Process id of the child, also after it ended."""
        return self._started().pid

    @property
    def name(self) -> str:
        """How messages call it."""
        pid = "not started" if self._child is None else f"pid {self._child.pid}"
        return f"worker process {' '.join(self.command[:3])} ({pid})"

    @property
    def status(self) -> int | None:
        """Exit status, negative for a signal; None while it runs or before it was started."""
        child = self._child
        if child is None or child.returncode is not None:
            return None if child is None else child.returncode
        # Looking must not reap: until stop() the number keeps naming this child and its group.
        seen = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if seen is None:
            return None
        return seen.si_status if seen.si_code == os.CLD_EXITED else -seen.si_status

    def alive(self) -> bool:
        """The child was started and runs."""
        return self._child is not None and self.status is None

    def log_tail(self, lines: int = TAIL_LINES) -> str:
        """The last lines of its log."""
        return self._log.tail(lines)

    def told(self) -> str:
        """Status, path of the log and its tail, for error messages."""
        return f"{_status_text(self.status)}; log {self.log_path}, last lines:\n{self.log_tail()}"

    def check_alive(self) -> None:
        """WorkerDied, with exit status and log tail, unless the child runs."""
        if not self.alive():
            raise WorkerDied(f"{self.name} is not running: {self.told()}")

    def remove_log(self) -> None:
        """Success: nothing to keep."""
        self._log.remove()

    # with ------------------------------------------------------------------------------------------
    def __enter__(self) -> WorkerProcess:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ran = self.alive()
        self.stop()
        if error is None and ran:
            self.remove_log()
        elif error is not None:
            error.add_note(f"log of {self.name} kept: {self.log_path}")

    # ending ----------------------------------------------------------------------------------------
    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            raise EnvironmentFailure(f"{self.name}: start it first")
        return self._child

    def _end(self, first: signal.Signals, grace_s: float) -> int | None:
        child = self._child
        if child is None or child.returncode is not None:
            return self.status
        tree = _descendants(child.pid)
        if self.status is None:
            child.send_signal(first)
            self._signal(signal.SIGCONT)  # a paused process would never see SIGTERM
            if not _exits(child.pid, grace_s):
                tree += _descendants(child.pid)
        self._signal(signal.SIGKILL)
        _kill(tree)
        self._reap(child)
        _live.pop(child.pid, None)
        return child.returncode

    def _signal(self, number: signal.Signals) -> None:
        """To the child's process group, which has its number as long as the child is not reaped."""
        child = self._started()
        if child.returncode is None:
            os.killpg(child.pid, number)

    def _reap(self, child: subprocess.Popen[bytes]) -> None:
        try:
            child.wait(KILL_WAIT_S)
        except subprocess.TimeoutExpired:
            raise EnvironmentFailure(f"{self.name} did not end {KILL_WAIT_S} s after SIGKILL") from None


def _exits(pid: int, within_s: float) -> bool:
    """Wait for the end of a process, without reaping it or waiting until somebody has."""
    if within_s <= 0:
        return False
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], within_s)[0])
    finally:
        os.close(handle)


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        try:
            process.kill()
        except psutil.Error:
            continue  # gone already; psutil never signals a number that was given to another process
    for process in processes:
        if process.is_running():
            _exits(process.pid, KILL_WAIT_S)


def _status_text(status: int | None) -> str:
    if status is None:
        return "no exit status"
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"


def _end_all() -> None:
    """At interpreter exit, also after Ctrl-C: no worker stays, whoever forgot it."""
    for process in list(_live.values()):
        process.kill()


_owner = os.getpid()
atexit.register(lambda: _end_all() if os.getpid() == _owner else None)

"""A worker process: started in its own session, logged to a file, ended with its whole tree."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from tierfuzz.errors import EnvironmentFailure
from tierfuzz.worker import guard

TAIL_LINES = 20
KILL_WAIT_S = 10.0


class WorkerProcess:
    """One child. Its output goes to `log_path` (a pipe could fill and stop it); it dies with this process."""

    def __init__(self, command: Sequence[str], log_path: Path, env: Mapping[str, str] | None = None) -> None:
        self.command = list(command)
        self.log_path = log_path
        self._env = dict(env or {})
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the child; EnvironmentFailure when its program does not exist."""
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        guarded = [sys.executable, "-S", "-E", str(guard.__file__), str(os.getpid()), *self.command]
        with self.log_path.open("ab") as log:
            try:
                self._child = subprocess.Popen(
                    guarded,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, "PYTHONUNBUFFERED": "1", **self._env},
                    start_new_session=True,
                )
            except OSError as error:
                raise EnvironmentFailure(f"cannot start {self.command[0]}: {error}") from error

    @property
    def pid(self) -> int:
        """Process id of the child."""
        if self._child is None:
            raise EnvironmentFailure(f"{self.command[0]} was not started")
        return self._child.pid

    @property
    def status(self) -> int | None:
        """Exit status, negative for a signal; None while it runs or before it was started."""
        return None if self._child is None else self._child.poll()

    def alive(self) -> bool:
        """The child runs."""
        return self._child is not None and self._child.poll() is None

    def log_tail(self, lines: int = TAIL_LINES) -> str:
        """The last lines of its log."""
        try:
            text = self.log_path.read_text(errors="replace")
        except OSError:
            return "(no log)"
        return "\n".join(text.splitlines()[-lines:]) or "(empty log)"

    def pause(self) -> None:
        """SIGSTOP; resume() heals it."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL the whole tree at once."""
        self._end(signal.SIGKILL, KILL_WAIT_S)

    def stop(self, grace_s: float = 5.0) -> None:
        """SIGTERM, wait `grace_s` seconds, then SIGKILL whatever is left of the tree."""
        self._end(signal.SIGTERM, grace_s)

    def _end(self, first: signal.Signals, grace_s: float) -> None:
        if self._child is None:
            return
        tree = _tree(self._child.pid)
        if self._child.poll() is None:
            self._child.send_signal(first)
        if first is signal.SIGKILL:
            _kill(tree)
        try:
            self._child.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait(KILL_WAIT_S)
        _kill(tree)

    def remove_log(self) -> None:
        """Success: nothing to keep."""
        self.log_path.unlink(missing_ok=True)


def _tree(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _kill(tree: list[psutil.Process]) -> None:
    for process in tree:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(tree, timeout=KILL_WAIT_S)

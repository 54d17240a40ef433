"""Processes that listen on every interface, in a network namespace of their own: nobody else can reach them.

They are asked over their standard input and output, a JSON line each, and hear events over sockets that are
files (ipc://), which no network namespace hides.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from tierfuzz.errors import EnvironmentFailure

UNSHARE = ("unshare", "--map-root-user", "--net", "--")
END_S = 10.0
TAIL = 2000  # characters of a log that are shown


class PrivateProcess:
    """`module` is run with `arguments`; it reads a JSON line and answers with one, until its input ends."""

    def __init__(self, module: str, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self.name = " ".join((module, *arguments))
        check_private(self.name)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            [*UNSHARE, sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **(environment or {})},
        )
        atexit.register(self.close)

    def ask(self, command: str, **fields: Any) -> Any:
        """The answer to one command; EnvironmentFailure, with its log, when there is none."""
        line = msgspec.json.encode({"command": command, **fields}) + b"\n"
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(line)
            stdin.flush()
        except OSError as error:
            raise self._failure(command) from error
        if not (answer := stdout.readline()):
            raise self._failure(command)
        said: dict[str, Any] = msgspec.json.decode(answer)
        if "error" in said:
            raise EnvironmentFailure(f"{self.name}: {command}: {said['error']}")
        return said["result"]

    def _failure(self, command: str) -> EnvironmentFailure:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)  # its log is complete then
        tail = self._tail()
        self.close()
        return EnvironmentFailure(f"{self.name} ended at {command}; its log: {tail}")

    def _tail(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-TAIL:]

    def close(self) -> None:
        """End its input, with which it ends and what it has started; kill it where it does not."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        atexit.unregister(self.close)


def check_private(name: str) -> None:
    """EnvironmentFailure where no network namespace can be made."""
    try:
        tried = subprocess.run([*UNSHARE, "true"], capture_output=True, check=False)
        why = tried.stderr.decode(errors="replace").strip() or f"status {tried.returncode}"
        if tried.returncode == 0:
            return
    except OSError as error:
        why = str(error)
    raise EnvironmentFailure(
        f"{name} listens on every interface, so it is started in a private network namespace only; none can "
        f"be made here ({why}): run as root, or allow user namespaces"
    )


class SocketFolder:
    """A folder for sockets that are files; gone with close()."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tierfuzz-")
        self.path = Path(self._folder.name)

    def close(self) -> None:
        """Remove it."""
        self._folder.cleanup()

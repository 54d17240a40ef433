"""Stands where a process would: a worker that tierfuzz did not start, and so never ends, kills or pauses."""

from __future__ import annotations

from tierfuzz.errors import UsageError


class AttachedProcess:
    """The calls of a WorkerProcess. Whether the worker lives, only its answers tell."""

    def __init__(self, url: str) -> None:
        self._url = url

    def start(self) -> None:
        """It runs, or it does not: that is its owner's matter."""

    def stop(self, grace_s: float = 0.0) -> int | None:
        """It goes on."""
        del grace_s
        return None

    def kill(self) -> int | None:
        """It goes on."""
        return None

    def pause(self) -> None:
        """Refused: UsageError."""
        raise UsageError(f"{self._url}: attached workers are never paused; start workers to do that")

    def resume(self) -> None:
        """Nothing was paused."""

    @property
    def pid(self) -> int:
        """No process of ours: 0."""
        return 0

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"attached worker {self._url}"

    @property
    def status(self) -> int | None:
        """Nobody here can know: None, as of a process that runs."""
        return None

    def alive(self) -> bool:
        """As far as a process is concerned."""
        return True

    def check_alive(self) -> None:
        """Nothing to check."""

    def log_tail(self, lines: int = 0) -> str:
        """Its log is its owner's."""
        del lines
        return "(the log of an attached worker is with its owner)"

    def told(self) -> str:
        """The same, for error messages."""
        return self.log_tail()

    def remove_log(self) -> None:
        """There is none."""

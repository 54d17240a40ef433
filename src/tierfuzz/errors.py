"""Every exception of tierfuzz, each with the exit code that the command line gives it."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal


class ExitCode(IntEnum):
    """Exit codes of every tierfuzz command."""

    HELD = 0
    VIOLATION = 1
    USAGE = 2
    ENVIRONMENT = 3
    VACUOUS = 4
    INTERRUPTED = 130  # Ctrl-C, as a shell says it


class TierfuzzError(Exception):
    """Base of every error that tierfuzz raises on purpose."""

    exit_code: ExitCode = ExitCode.ENVIRONMENT


class UsageError(TierfuzzError):
    """The input is wrong: the message says what was given, what was expected and what to do."""

    exit_code = ExitCode.USAGE


class FormatError(UsageError):
    """A file is not in a format (or format version) that this tierfuzz reads."""


class EnvironmentFailure(TierfuzzError):
    """Something outside the tested behaviour failed: a port, a process, the network."""

    exit_code = ExitCode.ENVIRONMENT


class WorkerDied(EnvironmentFailure):
    """A worker process ended; the message carries its exit status and the tail of its log."""


class WorkerNotReady(EnvironmentFailure):
    """A worker did not become healthy within its bound; the message carries the tail of its log."""


class Vacuous(TierfuzzError):
    """A run would prove nothing: the message says why, and what to do."""

    exit_code = ExitCode.VACUOUS


class RequestFailed(EnvironmentFailure):
    """A worker did not answer a request: refused, reset, timed out, or not in the expected shape.

    `failure` is "unreachable" or "timeout" where there was no answer at all, else "".
    """

    def __init__(self, message: str, failure: Literal["", "unreachable", "timeout"] = "") -> None:
        super().__init__(message)
        self.failure = failure


class VacuousRun(TierfuzzError):
    """The run never reached the states it exists for, so it proves nothing."""

    exit_code = ExitCode.VACUOUS

"""Runs a command that must not outlive its parent: the kernel sends SIGTERM when the parent dies."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """argv: the parent's pid, then the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(1)  # the parent died before the kernel knew
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()

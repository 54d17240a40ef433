"""Runs a command that must not outlive its parent: asks the kernel for SIGKILL at the parent's death, execs.

A script of its own, because the call has to be made between fork and exec, where a process with threads
may do next to nothing. Imports the standard library only, so that it can run without site-packages.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
ORPHANED = 125
NOT_FOUND = 127


def main() -> None:
    """argv: the parent's pid, then the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(ORPHANED)  # the parent died before the kernel knew
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"cannot run {command[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(NOT_FOUND)


if __name__ == "__main__":
    main()

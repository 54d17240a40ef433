"""The log file of a process: written by the child, its tail read for error messages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

_BYTES_PER_LINE = 4096  # longer lines are cut at the front; a tail must not read gigabytes


class LogFile:
    """One file; later lives of the same worker are appended."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self) -> BinaryIO:
        """Open for a child, creating folders as needed; the child inherits the descriptor."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return self.path.open("ab")

    def tail(self, lines: int) -> str:
        """The last `lines` lines, or a remark in brackets where there are none."""
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - lines * _BYTES_PER_LINE))
                text = file.read().decode(errors="replace")
        except OSError as error:
            return f"(no log: {error.strerror})"
        return "\n".join(text.splitlines()[-lines:]) or "(empty log)"

    def remove(self) -> None:
        """Delete the file, if it is there."""
        self.path.unlink(missing_ok=True)

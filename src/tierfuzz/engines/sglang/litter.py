"""Files that SGLang leaves in shared memory after every run (B20), found while it runs."""

from __future__ import annotations

from pathlib import Path

import psutil

PREFIX = "/dev/shm/sglang_"


def shared_memory_files(pid: int) -> list[Path]:
    """Files of the engine's own that this process and its children have mapped; [] where it is gone."""
    try:
        root = psutil.Process(pid)
        tree = [root, *root.children(recursive=True)]
    except psutil.Error:
        return []
    return sorted({path for process in tree for path in _mapped(process)})


def _mapped(process: psutil.Process) -> list[Path]:
    try:
        maps = process.memory_maps(grouped=True)
    except (psutil.Error, OSError):
        return []
    return [Path(one.path) for one in maps if one.path.startswith(PREFIX)]

"""Which GPU a worker runs on: one a worker while there are so many, then several on one."""

from __future__ import annotations

import shutil
import subprocess

TOOL = "nvidia-smi"
TOOL_BOUND_S = 30.0


def gpu_of(worker: int, visible: str | None) -> str:
    """Value of CUDA_VISIBLE_DEVICES for a worker; "" where nothing needs to be said.

    `visible`: what that variable says for us: a list that is shared out among the workers, or None.
    """
    names = [name.strip() for name in visible.split(",") if name.strip()] if visible else _all_gpus()
    return names[worker % len(names)] if names else ""


def has_gpu() -> bool:
    """The driver's own tool is there."""
    return shutil.which(TOOL) is not None


def _all_gpus() -> list[str]:
    """Numbers of the GPUs that the driver's own tool lists; [] where it is not there."""
    tool = shutil.which(TOOL)
    if tool is None:
        return []
    try:
        listed = subprocess.run(
            [tool, "-L"], capture_output=True, text=True, timeout=TOOL_BOUND_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [str(number) for number, _ in enumerate(listed.stdout.splitlines())]

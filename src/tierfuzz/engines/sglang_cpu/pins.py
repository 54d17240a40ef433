"""What goes into the environment of the CPU engine: a list that is part of tierfuzz, with its checksum."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tierfuzz.errors import EnvironmentFailure, UsageError

VERSIONS = ("0.5.17", "0.5.23")
PYTHONS = ((3, 11), (3, 12), (3, 13))
TORCH = "torch==2.13.0"
TRITON = "triton==3.9.0"  # only where torch brought none: a build for GPUs insists on its own
LIST = Path(__file__).with_name("packages.txt")
CHECKSUM = "37dd7fb4b83445b2e68197fa82a44587335ce77bd605af3740546fe274b6bb19"


def packages(path: Path = LIST, checksum: str = CHECKSUM) -> list[str]:
    """Requirements that both versions of the engine share, pinned; EnvironmentFailure for a list that was
    changed: what it would install is not what was tried."""
    data = path.read_bytes()
    seen = hashlib.sha256(data).hexdigest()
    if seen != checksum:
        raise EnvironmentFailure(
            f"{path}: checksum {seen}, expected {checksum}; the list was changed, install tierfuzz again"
        )
    return data.decode().split()


def check_version(version: str) -> str:
    """The version itself; UsageError lists those that can be installed for another one."""
    if version not in VERSIONS:
        raise UsageError(f"SGLang version {version!r}: expected one of {', '.join(VERSIONS)}")
    return version

"""Where tierfuzz keeps what is dear to make again: engines that it installed, model folders."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "TIERFUZZ_CACHE"


def cache_folder() -> Path:
    """The folder that TIERFUZZ_CACHE names, or `tierfuzz` in the user's cache folder; may be missing."""
    if own := os.environ.get(VARIABLE):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tierfuzz"

"""The choice of a worker: the longest overlap, then the least load, then the lowest number."""

from __future__ import annotations

from collections.abc import Mapping

from tierfuzz.errors import UsageError


def choose(pages: Mapping[int, float], loads: Mapping[int, float]) -> int:
    """The best of the workers in `loads`; `pages` they hold of the prompt, in any tier (none: 0)."""
    if not loads:
        raise UsageError("no worker to route to; expected the load of at least one registered worker")
    return min(loads, key=lambda worker: (-pages.get(worker, 0), loads[worker], worker))

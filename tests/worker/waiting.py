"""Waiting for a condition, with a bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

BOUND_S = 20.0
T = TypeVar("T")


def wait_for(what: str, condition: Callable[[], T | None]) -> T:
    """The first true value of `condition`; AssertionError says what was awaited."""
    deadline = time.monotonic() + BOUND_S
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.002)
    raise AssertionError(f"not seen within {BOUND_S} s: {what}")

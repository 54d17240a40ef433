"""A thread with an event loop, for Dynamo's bindings: they are asynchronous, and tierfuzz is not."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from tierfuzz.errors import EnvironmentFailure

CALL_BOUND_S = 30.0
QUIET = {"DYN_LOG": "error"}  # its log goes to stderr; set DYN_LOG to see more


def dynamo_core() -> Any:
    """Dynamo's bindings. Their log is set up when they are imported first."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    return import_module("dynamo._core")


class Loop:
    """Runs what Dynamo offers, one call after the other."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="dynamo", daemon=True).start()

    def call(self, make: Callable[[], Any], bound_s: float = CALL_BOUND_S) -> Any:
        """What `make` gives inside the loop, awaited where it has to be."""
        future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(_awaited(make), bound_s), self.loop)
        try:
            return future.result()
        except TimeoutError as error:
            raise EnvironmentFailure(f"dynamo did not answer a call within {bound_s:g} s") from error


async def _awaited(make: Callable[[], Any]) -> Any:
    """Some bindings give what they found at once, others something to wait for."""
    made = make()
    return await made if hasattr(made, "__await__") else made


@cache
def dynamo_loop() -> Loop:
    """The one loop of this process."""
    return Loop()

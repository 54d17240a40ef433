"""The canary: a fault that fires seldom, to show that a campaign would notice one that does."""

from __future__ import annotations

from collections.abc import Callable

from tierfuzz.model.engine import Engine
from tierfuzz.model.faults import Fault
from tierfuzz.model.request import Active
from tierfuzz.observation import TierSplit

EVERY, AT = 100, 60


class Canary(Fault):
    """Between two flushes of a hundred, every hit is reported a page longer than it is."""

    oracle = "phantom-hit"
    source = "a canary of our own"

    def __init__(self) -> None:
        self.flushes = 0

    def flush(self, engine: Engine, inner: Callable[[], bool]) -> bool:
        """Count the cases: each begins with a flush."""
        del engine
        self.flushes += 1
        return inner()

    def account(
        self,
        engine: Engine,
        inner: Callable[..., tuple[int, TierSplit | None]],
        active: Active,
        host_tokens: int,
        loaded: bool,
    ) -> tuple[int, TierSplit | None]:
        """One page too many, in one case of a hundred."""
        total, split = inner(active, host_tokens, loaded)
        if split is None or self.flushes % EVERY != AT:
            return total, split
        page = engine.config.page_size
        return total + page, TierSplit(split.device + page, split.host, split.storage)

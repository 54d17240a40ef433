"""The canary: a fault that fires seldom, to show that a campaign would notice one that does."""

from __future__ import annotations

from collections.abc import Callable

from tierfuzz.faults import accounting
from tierfuzz.faults.accounting import Account
from tierfuzz.model.engine import Engine
from tierfuzz.model.request import Active

EVERY, AT = 100, 60


class Canary(accounting.PhantomPage):
    """Between two flushes of a hundred, every hit is reported a page longer than it is."""

    source = "a canary of our own"

    def __init__(self) -> None:
        self.flushes = 0

    def flush(self, engine: Engine, inner: Callable[[], bool]) -> bool:
        """Count the cases: each begins with a flush."""
        del engine
        self.flushes += 1
        return inner()

    def account(
        self, engine: Engine, inner: Callable[..., Account], active: Active, host_tokens: int, loaded: bool
    ) -> Account:
        """One page too many, in one case of a hundred."""
        if self.flushes % EVERY != AT:
            return inner(active, host_tokens, loaded)
        return super().account(engine, inner, active, host_tokens, loaded)

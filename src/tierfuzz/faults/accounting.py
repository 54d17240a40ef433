"""Faults of the accounting: the tier split of a reply."""

from __future__ import annotations

from collections.abc import Callable

from tierfuzz.model.engine import Engine
from tierfuzz.model.faults import Fault
from tierfuzz.model.request import Active
from tierfuzz.observation import TierSplit

Account = tuple[int, TierSplit | None]


class HostReportedAsDevice(Fault):
    """Every token loaded from host is accounted for as a device hit."""

    oracle = "host-miss"
    source = "known-bugs, trap P4"

    def account(
        self, engine: Engine, inner: Callable[..., Account], active: Active, host_tokens: int, loaded: bool
    ) -> Account:
        """Account with no host part."""
        del engine
        total, split = inner(active, host_tokens, loaded)
        return total, TierSplit(device=total) if split else None


class SplitCountedTwice(Fault):
    """The device part of the split is added once more than the total."""

    oracle = "split-sum"
    source = "T44, sgl-project/sglang#26976"

    def account(
        self, engine: Engine, inner: Callable[..., Account], active: Active, host_tokens: int, loaded: bool
    ) -> Account:
        """Account with the device part doubled."""
        del engine
        total, split = inner(active, host_tokens, loaded)
        return total, TierSplit(2 * split.device, split.host, split.storage) if split else None


class PhantomPage(Fault):
    """A hit is reported one page longer than it is."""

    oracle = "phantom-hit"
    source = "T43, sgl-project/sglang#11900"

    def account(
        self, engine: Engine, inner: Callable[..., Account], active: Active, host_tokens: int, loaded: bool
    ) -> Account:
        """Account with one page too many."""
        total, split = inner(active, host_tokens, loaded)
        page = engine.config.page_size
        if split is None:
            return total, None
        return total + page, TierSplit(split.device + page, split.host, split.storage)

"""Faults of the accounting: the tier split of a reply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tierfuzz.model.engine import Engine
from tierfuzz.model.faults import Fault
from tierfuzz.model.node import Node
from tierfuzz.model.request import Active, Gauges
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


class SplitCountedPerChunk(Fault):
    """Every further chunk of a prompt adds the device part of the split once more."""

    oracle = "split-sum"
    source = "T44, sgl-project/sglang#26976"

    def allocate(
        self, engine: Engine, inner: Callable[[Active, int], None], active: Active, pages: int
    ) -> None:
        """Between the chunks of a prompt more is cached than at its start, and less than at its end."""
        del engine
        inner(active, pages)
        split = active.split
        if split is not None and active.prefix < active.computed < active.prompt_length:
            again = active.prefix - split.host - split.storage
            active.split = TierSplit(split.device + again, split.host, split.storage)


class CachedAddedAgain(Fault):
    """A request that comes back after a retraction counts its cached tokens again."""

    oracle = "phantom-hit"
    source = "T43, sgl-project/sglang#11900"

    def start(
        self,
        engine: Engine,
        inner: Callable[..., None],
        active: Active,
        prefix: list[Node],
        host: list[Node],
        loaded: bool,
    ) -> None:
        """Admit, and count once more."""
        del engine
        inner(active, prefix, host, loaded)
        if active.retractions:
            split = active.split or TierSplit()
            active.cached = (active.cached or 0) + active.prefix
            active.split = TierSplit(split.device + active.prefix, split.host, split.storage)


class DeclinedLoadCredited(Fault):
    """Host tokens that were matched are reported as host hits although their load-back was declined."""

    oracle = "split-sum"
    source = "T45, sgl-project/sglang#37503"

    def account(
        self, engine: Engine, inner: Callable[..., Account], active: Active, host_tokens: int, loaded: bool
    ) -> Account:
        """Account as of the match."""
        del engine
        total, split = inner(active, host_tokens, loaded)
        if loaded or not host_tokens:
            return total, split
        return total, TierSplit(max(0, total - host_tokens), host_tokens)


class BookedOnTheWrongTier(Fault):
    """The host pages that a demoted node keeps are booked as free: on device, and on host."""

    oracle = "pool-levels"
    source = "T15, NVIDIA/TensorRT-LLM#12834"

    def __init__(self) -> None:
        self.pages = 0

    def demote(self, engine: Engine, inner: Callable[[Node], None], node: Node) -> None:
        """The counters of the node's new tier are changed where its old one was meant."""
        del engine
        inner(node)
        self.pages += len(node)

    def gauges(self, engine: Engine, inner: Callable[[], Gauges]) -> Gauges:
        """Levels by those counters."""
        levels, tokens = inner(), self.pages * engine.config.page_size
        return replace(levels, device_free=levels.device_free + tokens, host_used=levels.host_used - tokens)

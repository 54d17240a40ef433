"""Faults of a router's tree: tiers mixed up, names forgotten, clears and farewells ignored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from tierfuzz.events import BlockRemoved, Tier
from tierfuzz.model.faults import Fault

if TYPE_CHECKING:
    from tierfuzz.consumers.base import Source
    from tierfuzz.consumers.reference import Reference

Removal = Callable[["Source", BlockRemoved], None]


class TierBlindRemoval(Fault):
    """Any removal takes the worker off the page, whatever tier it names."""

    oracle = "wrong-worker"
    source = "T37, sgl-project/sglang#39108"

    def book_removal(self, consumer: Reference, inner: Removal, source: Source, event: BlockRemoved) -> None:
        """Throw the medium away."""
        del inner
        consumer.tree.remove(source, event.hashes, None)


class TierSpelledTwice(Fault):
    """Removals from device look for another spelling of the tier than stores were booked under."""

    oracle = "router-stale"
    source = "T39, llm-d/llm-d-kv-cache#592"

    def book_removal(self, consumer: Reference, inner: Removal, source: Source, event: BlockRemoved) -> None:
        """Change the spelling."""
        del consumer
        device = event.tier is Tier.DEVICE
        inner(source, msgspec.structs.replace(event, medium="gpu") if device else event)


class NameGoesWithDeviceCopy(Fault):
    """The name of a block is forgotten with its device copy: the removal of its host copy finds nothing."""

    oracle = "router-stale"
    source = "T40, llm-d/llm-d-kv-cache#561"

    def book_removal(self, consumer: Reference, inner: Removal, source: Source, event: BlockRemoved) -> None:
        """Remove, and forget the names."""
        inner(source, event)
        for name in event.hashes if event.tier is Tier.DEVICE else ():
            consumer.tree.unname(source, name)


class ClearIgnored(Fault):
    """The clear event is read, and nothing is done."""

    oracle = "router-stale"
    source = "T41, llm-d/llm-d-kv-cache#626"

    def book_clear(self, consumer: Reference, inner: Callable[[Source], None], source: Source) -> None:
        """Keep everything."""
        del consumer, inner, source


class DeadRankKeepsEntries(Fault):
    """A rank that is deregistered is heard no more, and keeps what it held."""

    oracle = "router-leak"
    source = "T42, ai-dynamo/dynamo#6569"

    def leave(self, consumer: Reference, inner: Callable[[Source], None], source: Source) -> None:
        """Keep everything."""
        del consumer, inner, source


class TierWeightCountsPages(Fault):
    """A page on host counts for 0.8 pages where pages are meant."""

    oracle = "router-miss"
    source = "T47, llm-d/llm-d-router#1047"

    def count_pages(
        self, consumer: Reference, inner: Callable[[Tier, int], int], tier: Tier, pages: int
    ) -> int:
        """Weigh, and round down."""
        del consumer
        return inner(tier, pages) if tier is Tier.DEVICE else int(0.8 * inner(tier, pages))

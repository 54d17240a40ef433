"""Our own consumers: subscriber, prefix tree and routing together; a tier-blind one as a control."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tierfuzz.codec import decode_batch
from tierfuzz.consumers.base import Overlap, Source
from tierfuzz.consumers.feed import Feed, Kind, Step
from tierfuzz.consumers.node import Node
from tierfuzz.consumers.routing import choose
from tierfuzz.consumers.tree import PrefixTree, leading, served
from tierfuzz.events import BlockRemoved, BlockStored, Tier
from tierfuzz.model.faults import Fault, wrap


class Reference:
    """Keeps tiers apart; messages are believed in order only, and lost ones void what was said before.

    Methods from deliver() to count_pages() are seams for faults (docs/faults.md). A source is a worker and
    a rank. The rank of a message is that of its socket, whatever its payload says.
    """

    name = "reference"

    def __init__(self, faults: Sequence[Fault] = ()) -> None:
        self.tree = PrefixTree()
        self._feeds: dict[Source, Feed] = {}
        self._sizes: dict[int, int] = {}
        for fault in faults:
            wrap("consumer", self, self, fault)

    # life ------------------------------------------------------------------------------------------
    def register(self, worker: int, page_size: int, ranks: int = 1) -> None:
        """Expect messages of a worker."""
        self._sizes[worker] = page_size
        for rank in range(ranks):
            self._feeds.setdefault((worker, rank), Feed())

    def deregister(self, worker: int, rank: int | None = None) -> None:
        """A worker or a rank is gone, and what it held."""
        for source in [known for known in self._feeds if known[0] == worker and rank in (None, known[1])]:
            del self._feeds[source]
            self.leave(source)

    def leave(self, source: Source) -> None:
        """Nothing of this source may be claimed any more."""
        self.tree.clear(source)

    def reset(self) -> None:
        """Start over, empty."""
        self.tree = PrefixTree()
        self._feeds.clear()
        self._sizes.clear()

    # subscriber ------------------------------------------------------------------------------------
    def deliver(self, worker: int, rank: int, seq: int, payload: bytes) -> None:
        """One message; those of strangers are ignored."""
        source = (worker, rank)
        if source in self._feeds:
            self._carry_out(source, self._feeds[source].offer(seq, payload))

    def wanted(self) -> list[tuple[int, int, int]]:
        """Replays that are needed; one that has not helped is given up."""
        for source, feed in self._feeds.items():
            self._carry_out(source, feed.give_up())
        wishes = [(source, feed.wish()) for source, feed in self._feeds.items()]
        return [(*source, first) for source, first in wishes if first is not None]

    def _carry_out(self, source: Source, steps: Iterable[Step]) -> None:
        for step in steps:
            if step.kind is Kind.APPLY:
                self._apply(source, step.seq, step.payload)
            else:
                self.lost(source)

    def lost(self, source: Source) -> None:
        """What this source has said so far can be wrong: it restarted, or messages are gone for good."""
        self.tree.clear(source)

    def _apply(self, source: Source, seq: int, payload: bytes) -> None:
        for event in decode_batch(seq, payload).events:
            if isinstance(event, BlockStored):
                self.book_store(source, event)
            elif isinstance(event, BlockRemoved):
                self.book_removal(source, event)
            else:
                self.book_clear(source)

    # tree ------------------------------------------------------------------------------------------
    def book_store(self, source: Source, event: BlockStored) -> None:
        """Blocks came to a tier of a source."""
        self.tree.store(source, event)

    def book_removal(self, source: Source, event: BlockRemoved) -> None:
        """Blocks left one tier of a source."""
        self.tree.remove(source, event.hashes, event.tier)

    def book_clear(self, source: Source) -> None:
        """A source is empty, in all its tiers."""
        self.tree.clear(source)

    # answers ---------------------------------------------------------------------------------------
    def count_pages(self, tier: Tier, pages: int) -> int:
        """What pages in a tier count for: a page is a page wherever it is."""
        del tier
        return pages

    def overlap(self, tokens: Sequence[int], namespace: str = "") -> Overlap:
        """Leading pages by source and tier, each tier for itself."""
        found: Overlap = {}
        for size, path in self._paths(tokens, namespace):
            for source, tiers in leading(path).items():
                if self._sizes.get(source[0]) == size:
                    found[source] = {tier: self.count_pages(tier, pages) for tier, pages in tiers.items()}
        return found

    def route(self, tokens: Sequence[int], loads: Mapping[int, float], namespace: str = "") -> int:
        """By pages in any tier, on the best rank of each worker; the dead are not asked."""
        pages: dict[int, float] = {}
        for size, path in self._paths(tokens, namespace):
            for (worker, _), tiers in served(path).items():
                if self._sizes.get(worker) == size:
                    counted = sum(self.count_pages(tier, number) for tier, number in tiers.items())
                    pages[worker] = max(pages.get(worker, 0), counted)
        alive = {worker for worker, _ in self._feeds}
        return choose(pages, {worker: load for worker, load in loads.items() if worker in alive})

    def _paths(self, tokens: Sequence[int], namespace: str) -> list[tuple[int, list[Node]]]:
        """The prompt in pages of each size that a worker has."""
        sizes = sorted(set(self._sizes.values()))
        return [(size, list(self.tree.path(tokens, size, namespace))) for size in sizes]


class TierBlind(Reference):
    """The control that has to fail: any removal takes the worker off the page, whatever tier it names."""

    name = "tier-blind"

    def book_removal(self, source: Source, event: BlockRemoved) -> None:
        """Throw the medium away (T37, sgl-project/sglang#39108)."""
        self.tree.remove(source, event.hashes, None)

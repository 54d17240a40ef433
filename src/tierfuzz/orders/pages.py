"""The pages that a stream names: their tokens, their chains, and which prompts to ask a consumer about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tierfuzz.events import BlockStored
from tierfuzz.orders.stream import Sent, Stream

Key = tuple[int | None, tuple[int, ...], str]  # block before, tokens of the page, cache salt


@dataclass(frozen=True)
class Probe:
    """A question: tokens under a salt ("" for none), and the blocks that these are, root first."""

    tokens: tuple[int, ...]
    blocks: tuple[int, ...]
    salt: str = ""


class Pages:
    """A trie of every page that the stream stores anywhere, by content and not by a rule for hashes."""

    def __init__(self, stream: Stream) -> None:
        self.size = stream.page_size
        self._tokens: dict[int, tuple[int, ...]] = {}
        self._parents: dict[int, int | None] = {}
        self._salts: dict[int, str] = {}
        self._at: dict[Key, int] = {}
        self._below: dict[int, list[int]] = {}
        for entry in stream.entries:
            if isinstance(entry, Sent):
                for event in entry.events:
                    if isinstance(event, BlockStored):
                        self._learn(event)

    def _learn(self, event: BlockStored) -> None:
        parent, size = event.parent, event.block_size
        for index, block in enumerate(event.hashes):
            tokens = event.tokens[index * size : (index + 1) * size]
            if block not in self._tokens and len(tokens) == size:
                self._tokens[block], self._parents[block] = tokens, parent
                self._salts[block] = event.cache_salt or ""
                self._at.setdefault((parent, tokens, self._salts[block]), block)
                if parent is not None:
                    self._below.setdefault(parent, []).append(block)
            parent = block

    @property
    def blocks(self) -> list[int]:
        """Every block, in order of its first store."""
        return list(self._tokens)

    def parent(self, block: int) -> int | None:
        """The block before, None at the root (or for an unknown block)."""
        return self._parents.get(block)

    def tokens(self, block: int) -> tuple[int, ...]:
        """Tokens of a block's page."""
        return self._tokens[block]

    def chain(self, block: int) -> tuple[int, ...]:
        """Blocks from the root to this one; () where one above it was never stored."""
        chain: list[int] = []
        at: int | None = block
        while at is not None:
            if at not in self._tokens or at in chain[-1:]:
                return ()
            chain.append(at)
            at = self._parents[at]
        return tuple(reversed(chain))

    def below(self, blocks: Iterable[int]) -> frozenset[int]:
        """These blocks and everything below them."""
        found: set[int] = set()
        left = list(blocks)
        while left:
            if (block := left.pop()) not in found:
                found.add(block)
                left += self._below.get(block, ())
        return frozenset(found)

    def walk(self, tokens: Sequence[int], salt: str = "") -> tuple[int, ...]:
        """The blocks that a prompt's leading whole pages are, as far as the stream names them."""
        found: list[int] = []
        parent: int | None = None
        for start in range(0, len(tokens) - self.size + 1, self.size):
            block = self._at.get((parent, tuple(tokens[start : start + self.size]), salt))
            if block is None:
                break
            found.append(block)
            parent = block
        return tuple(found)

    # what to ask -----------------------------------------------------------------------------------
    def probe_to(self, block: int) -> Probe | None:
        """The prompt that ends with this block; None where its beginning is not known."""
        chain = self.chain(block)
        if not chain:
            return None
        tokens = tuple(token for one in chain for token in self._tokens[one])
        return Probe(tokens, chain, self._salts[block])

    def headless(self, block: int) -> Probe | None:
        """A prompt of this block's page alone, as if the block stood at the root; None where it does."""
        if block not in self._tokens or self._parents[block] is None:
            return None
        tokens, salt = self._tokens[block], self._salts[block]
        return Probe(tokens, self.walk(tokens, salt), salt)

    def around(self, blocks: Iterable[int]) -> Iterator[Probe]:
        """Prompts through these blocks to a leaf below each, and the blocks as if at the root."""
        seen: set[int] = set()
        for block in blocks:
            if (probe := self.headless(block)) is not None:
                yield probe
            if block in seen:
                continue
            leaf = block
            while self._below.get(leaf):
                leaf = self._below[leaf][-1]
            if (probe := self.probe_to(leaf)) is not None:
                seen.update(probe.blocks)
                yield probe

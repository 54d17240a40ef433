"""Token sequences cut into pages with chained hashes, grown one page at a time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from tierfuzz.hashing import signed64

PageTokens = tuple[int, ...]


@dataclass(frozen=True)
class PageRun:
    """Consecutive pages: their chained hashes and their tokens; slicing gives a PageRun."""

    hashes: tuple[int, ...]
    tokens: tuple[PageTokens, ...]

    def __getitem__(self, part: slice) -> PageRun:
        """The pages of a slice."""
        return PageRun(self.hashes[part], self.tokens[part])

    def __len__(self) -> int:
        """Number of pages."""
        return len(self.hashes)


class PagedSequence:
    """The tokens of one request, as whole pages; tokens may be appended, never changed."""

    def __init__(self, tokens: tuple[int, ...], page_size: int, seed: bytes = b"") -> None:
        self.page_size = page_size
        self.seed = seed
        self.tokens = list(tokens)
        self.hashes: list[int] = []
        self.pages: list[PageTokens] = []
        self._digest = seed
        self._extend()

    def __len__(self) -> int:
        """Tokens so far."""
        return len(self.tokens)

    def append(self, token: int) -> None:
        """Add one token; a page that becomes full gets its hash."""
        self.tokens.append(token)
        if len(self.tokens) % self.page_size == 0:
            self._extend()

    def beginning(self, tokens: int) -> PagedSequence:
        """The first `tokens` tokens as a sequence of its own."""
        return PagedSequence(tuple(self.tokens[:tokens]), self.page_size, self.seed)

    def run(self, pages: int) -> PageRun:
        """The first `pages` whole pages."""
        return PageRun(tuple(self.hashes[:pages]), tuple(self.pages[:pages]))

    def _extend(self) -> None:
        size = self.page_size
        start = len(self.pages) * size
        whole = (len(self.tokens) - start) // size
        packed = np.array(self.tokens[start : start + whole * size], dtype="<u4").tobytes()
        for index in range(whole):
            page = packed[index * size * 4 : (index + 1) * size * 4]
            self._digest = hashlib.sha256(self._digest + page).digest()
            self.hashes.append(signed64(self._digest))
            self.pages.append(tuple(self.tokens[start + index * size : start + (index + 1) * size]))

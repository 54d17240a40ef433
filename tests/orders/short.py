"""Streams written short: "Sg1-2 Rg2 Sh2" of one worker, where page n follows page n-1."""

from __future__ import annotations

import re

from tierfuzz.events import AllBlocksCleared, BlockRemoved, BlockStored, KvEvent
from tierfuzz.hashing import page_hashes
from tierfuzz.orders.stream import Entry, Restarted, Sent, Stream
from tierfuzz.program import WritePolicy

MEDIA = {"g": "GPU", "h": "CPU_PINNED"}
SIZE = 4
MOST = 9
BLOCKS = page_hashes([page for page in range(1, MOST + 1) for _ in range(SIZE)], SIZE)
_WORD = re.compile(r"([SR])([gh])(\d)(?:-(\d))?")


def short(text: str, policy: WritePolicy = "write_back", profile: str = "sglang-0.5.17") -> Stream:
    """A word a message: `S`/`R` store or remove, `g`/`h` on device or host, pages; `C` clear, `X` restart."""
    return Stream(policy, tuple(entry(word) for word in text.split()), SIZE, profile)


def entry(word: str) -> Entry:
    """One word; a removal "Rg4-1" names its pages from the last on."""
    if word == "X":
        return Restarted(0)
    return Sent(0, 0, (AllBlocksCleared() if word == "C" else event(word),))


def event(word: str) -> KvEvent:
    """A store or a removal."""
    match = _WORD.fullmatch(word)
    assert match, word
    kind, medium, first, last = match[1], MEDIA[match[2]], int(match[3]), int(match[4] or match[3])
    pages = list(range(first, last + 1)) or list(range(first, last - 1, -1))
    hashes = tuple(BLOCKS[page - 1] for page in pages)
    if kind == "R":
        return BlockRemoved(hashes, medium)
    tokens = tuple(page for page in pages for _ in range(SIZE))
    return BlockStored(hashes, BLOCKS[first - 2] if first > 1 else None, tokens, SIZE, medium)

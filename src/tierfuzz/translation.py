"""Blocks of one run in the words of another: the same prompts, other answers, and so other hashes."""

from __future__ import annotations

import msgspec

from tierfuzz.events import BlockRemoved, BlockStored, KvEvent
from tierfuzz.hashing import page_hashes


class Translation:
    """From the hashes of this run to those of the recorded one, by the place of a page in prompt and answer.

    Pages of `page_size` tokens. What no answer has touched has the same hash in both.
    """

    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self._recorded: dict[int, int] = {}

    def learn(self, prompt: tuple[int, ...], here: tuple[int, ...], recorded: tuple[int, ...]) -> None:
        """The same prompt was answered in these two ways."""
        if here == recorded:
            return
        mine = page_hashes((*prompt, *here), self._page_size)
        theirs = page_hashes((*prompt, *recorded), self._page_size)
        self._recorded.update(zip(mine, theirs, strict=False))

    def event(self, event: KvEvent) -> KvEvent:
        """The event as the recorded run would have told it."""
        if isinstance(event, BlockStored):
            parent = None if event.parent is None else self._of(event.parent)
            return msgspec.structs.replace(event, hashes=tuple(map(self._of, event.hashes)), parent=parent)
        if isinstance(event, BlockRemoved):
            return msgspec.structs.replace(event, hashes=tuple(map(self._of, event.hashes)))
        return event

    def _of(self, block: int) -> int:
        return self._recorded.get(block, block)

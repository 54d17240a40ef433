"""The batches of a recording as a stream: pages get tokens of their own, and hashes that follow from them.

A recording has the hashes of its blocks but not their tokens. A consumer that computes hashes from tokens
would find nothing, so each block is renamed, everywhere alike: the k-th new block is a page of token k.
"""

from __future__ import annotations

from collections import defaultdict

from tierfuzz.events import BlockRemoved, BlockStored, KvEvent
from tierfuzz.hashing import extend_chain, page_hashes, signed64
from tierfuzz.model.rules import PROFILES
from tierfuzz.orders.stream import Sent, Stream
from tierfuzz.prompts import tokens_of
from tierfuzz.recording import Recording


def stream_of(recording: Recording) -> Stream:
    """All messages of the recorded worker, of which it was the only one."""
    header = recording.header
    naming = _Naming(recording)
    entries = tuple(
        Sent(0, batch.rank, tuple(naming.event(event) for event in events))
        for batch, events in zip(recording.batches, recording.typed, strict=True)
    )
    profile = f"{header.engine}-{header.version}"
    return Stream(
        header.write_policy,
        entries,
        header.page_size,
        profile if profile in PROFILES else "default",
        header.storage_backend is not None,
        frozenset(naming.block(block) for block in shared_blocks(recording)),
        f"recorded: {recording.path.name}",
    )


def shared_blocks(recording: Recording) -> frozenset[int]:
    """Blocks, as recorded, that requests of more than one namespace can have computed (B6c)."""
    owners: defaultdict[int, set[str | None]] = defaultdict(set)
    for op in recording.ops:
        tokens = tokens_of(op.prompt) + (op.output_ids or ())
        for block in page_hashes(tokens, recording.header.page_size):
            owners[block].add(op.extra_key)
    return frozenset(block for block, names in owners.items() if len(names) > 1)


class _Naming:
    """From recorded blocks to blocks with tokens; a parent that is never stored stands at the root."""

    def __init__(self, recording: Recording) -> None:
        self._size = recording.header.page_size
        self._parents: dict[int, int | None] = {}
        self._digests: dict[int, bytes] = {}
        self._tokens: dict[int, tuple[int, ...]] = {}
        for events in recording.typed:
            for event in events:
                if isinstance(event, BlockStored):
                    before = (event.parent, *event.hashes)
                    self._parents.update(zip(event.hashes, before, strict=False))

    def event(self, event: KvEvent) -> KvEvent:
        """The same event about renamed blocks, with tokens."""
        if isinstance(event, BlockStored):
            hashes = tuple(self.block(block) for block in event.hashes)
            tokens = tuple(token for block in event.hashes for token in self._tokens[block])
            parent = None if event.parent is None else self.block(event.parent)
            return BlockStored(hashes, parent, tokens, self._size, event.medium, event.lora_id)
        if isinstance(event, BlockRemoved):
            return BlockRemoved(tuple(self.block(block) for block in event.hashes), event.medium)
        return event

    def block(self, block: int) -> int:
        """The new name of a block."""
        missing = []
        at: int | None = block
        while at is not None and at not in self._digests:
            missing.append(at)
            at = self._parents.get(at)
        digest = self._digests[at] if at is not None else b""
        for one in reversed(missing):
            tokens = (len(self._digests) + 1,) * self._size
            digest = extend_chain(digest, tokens)
            self._digests[one], self._tokens[one] = digest, tokens
        return signed64(self._digests[block])

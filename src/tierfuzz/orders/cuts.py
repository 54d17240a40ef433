"""Ways to make a stream smaller: fewer pages, flatter trees, merged events, fewer sources."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from tierfuzz.events import AllBlocksCleared, BlockRemoved, BlockStored, KvEvent
from tierfuzz.hashing import extend_chain, page_hashes, signed64
from tierfuzz.orders.pages import Pages
from tierfuzz.orders.stream import Entry, Restarted, Sent, Stream

Change = Callable[[KvEvent], KvEvent | None]


def with_entries(stream: Stream, entries: Collection[Entry]) -> Stream:
    """The same history with other messages."""
    return msgspec.structs.replace(stream, entries=tuple(entries))


def singles(stream: Stream) -> Stream:
    """A message for every event."""
    entries: list[Entry] = []
    for entry in stream.entries:
        if isinstance(entry, Restarted):
            entries.append(entry)
        else:
            for index, event in enumerate(entry.events):
                names = entry.namespaces[index : index + 1]
                entries.append(Sent(entry.worker, entry.rank, (event,), names))
    return with_entries(stream, entries)


def without_pages(stream: Stream, blocks: Collection[int]) -> Stream:
    """No event names these blocks any more; what is empty then is gone."""
    return _changed(stream, lambda event: without_blocks(event, blocks))


def without_blocks(event: KvEvent, blocks: Collection[int]) -> KvEvent | None:
    """An event without some of its blocks; a store loses those after the first of them, too."""
    if isinstance(event, BlockStored):
        kept = next((i for i, block in enumerate(event.hashes) if block in blocks), len(event.hashes))
        tokens = event.tokens[: kept * event.block_size]
        return msgspec.structs.replace(event, hashes=event.hashes[:kept], tokens=tokens) if kept else None
    if isinstance(event, BlockRemoved):
        left = tuple(block for block in event.hashes if block not in blocks)
        return BlockRemoved(left, event.medium) if left else None
    return event


def _changed(stream: Stream, change: Change) -> Stream:
    entries: list[Entry] = []
    for entry in stream.entries:
        if isinstance(entry, Restarted):
            entries.append(entry)
            continue
        pairs = [(change(event), entry.namespace(index)) for index, event in enumerate(entry.events)]
        kept = [(event, name) for event, name in pairs if event is not None]
        names = tuple(name for _, name in kept) if entry.namespaces else ()
        if kept:
            entries.append(Sent(entry.worker, entry.rank, tuple(event for event, _ in kept), names))
    return with_entries(stream, entries)


def trimmed(stream: Stream) -> Iterator[Stream]:
    """One event less one of its blocks, each in turn; a store loses those after it."""
    for at, entry in enumerate(stream.entries):
        if isinstance(entry, Sent) and len(entry.events) == 1:
            event = entry.events[0]
            for block in getattr(event, "hashes", ())[::-1]:
                if (less := without_blocks(event, {block})) is not None:
                    changed = msgspec.structs.replace(entry, events=(less,))
                    yield with_entries(stream, [*stream.entries[:at], changed, *stream.entries[at + 1 :]])


@dataclass(frozen=True)
class _Names:
    """New hashes and tokens of blocks that are renamed; `gone`: a block that no event names any more."""

    hashes: Mapping[int, int]
    tokens: Mapping[int, tuple[int, ...]]
    gone: int | None = None
    above: int | None = None  # what was above the one that is gone

    def hash(self, block: int) -> int:
        """The new hash of a block."""
        return self.hashes.get(block, block)

    def parent(self, block: int | None) -> int | None:
        """The new hash of what a block comes after."""
        block = self.above if block == self.gone else block
        return None if block is None else self.hash(block)

    def event(self, event: KvEvent) -> KvEvent | None:
        """The event about the renamed blocks; a store goes on after the one that is gone."""
        if isinstance(event, AllBlocksCleared):
            return event
        kept = [block for block in event.hashes if block != self.gone]
        hashes = tuple(self.hash(block) for block in kept)
        if not kept:
            return None
        if isinstance(event, BlockRemoved):
            return BlockRemoved(hashes, event.medium)
        of = dict(zip(event.hashes, _paged(event), strict=True))
        tokens = tuple(token for block in kept for token in self.tokens.get(block, of[block]))
        return msgspec.structs.replace(event, hashes=hashes, tokens=tokens, parent=self.parent(event.parent))


def _paged(event: BlockStored) -> list[tuple[int, ...]]:
    size = event.block_size
    return [event.tokens[start : start + size] for start in range(0, len(event.hashes) * size, size)]


def lifted(stream: Stream, block: int) -> Stream | None:
    """A page goes and what is below it moves up; None where its neighbours could not be told apart then."""
    pages = Pages(stream)
    chain = pages.chain(block)
    below = pages.below([block]) - {block}
    if not chain or not below:
        return None
    hashes = {}
    for one in below:
        probe = pages.probe_to(one)
        assert probe is not None
        cut = (len(chain) - 1) * pages.size
        hashes[one] = page_hashes(probe.tokens[:cut] + probe.tokens[cut + pages.size :], pages.size)[-1]
    others = set(pages.blocks) - below - {block}
    if len(set(hashes.values())) < len(hashes) or others & set(hashes.values()):
        return None
    return _changed(stream, _Names(hashes, {}, block, pages.parent(block)).event)


def renumbered(stream: Stream) -> Stream:
    """Pages named anew in order of appearance: page k is token k, over and over."""
    pages = Pages(stream)
    hashes: dict[int, int] = {}
    tokens: dict[int, tuple[int, ...]] = {}
    digests: dict[int, bytes] = {}
    for number, block in enumerate(pages.blocks, 1):
        tokens[block] = (number,) * pages.size
    for block in pages.blocks:
        digest = b""
        for one in pages.chain(block) or (block,):
            digest = digests.setdefault(one, extend_chain(digest, tokens[one]))
        hashes[block] = signed64(digests[block])
    return _changed(stream, _Names(hashes, tokens).event)


def merged(stream: Stream) -> Iterator[Stream]:
    """Two events of one kind made one: the later where the earlier is, or the other way round."""
    entries = stream.entries
    for first in range(len(entries)):
        for second in range(first + 1, len(entries)):
            if (both := _together(entries[first], entries[second])) is not None:
                rest = [entry for at, entry in enumerate(entries) if at not in (first, second)]
                yield with_entries(stream, [*rest[:first], both, *rest[first:]])
                if second > first + 1:
                    yield with_entries(stream, [*rest[: second - 1], both, *rest[second - 1 :]])


def _together(one: Entry, other: Entry) -> Sent | None:
    """Two messages of one event each as one of one event."""
    if not isinstance(one, Sent) or not isinstance(other, Sent):
        return None
    alike = one.source == other.source and one.namespaces == other.namespaces
    if not alike or len(one.events) != 1 or len(other.events) != 1:
        return None
    event = _one_event(one.events[0], other.events[0])
    return msgspec.structs.replace(one, events=(event,)) if event is not None else None


def _one_event(one: KvEvent, other: KvEvent) -> KvEvent | None:
    if isinstance(one, BlockStored) and isinstance(other, BlockStored):
        if (one.medium, one.hashes[-1]) != (other.medium, other.parent):
            return None
        hashes, tokens = one.hashes + other.hashes, one.tokens + other.tokens
        return msgspec.structs.replace(one, hashes=hashes, tokens=tokens)
    if isinstance(one, BlockRemoved) and isinstance(other, BlockRemoved) and one.medium == other.medium:
        return BlockRemoved(one.hashes + other.hashes, one.medium)
    return None


def plainer(stream: Stream) -> Iterator[Stream]:
    """One source fewer, no ranks, no namespaces, pages numbered."""
    workers = sorted({entry.worker for entry in stream.entries})
    for old in workers:
        for new in range(old):
            yield with_entries(stream, [_at(entry, old, new) for entry in stream.entries])
    yield with_entries(stream, [_plain(entry, rank=0) for entry in stream.entries])
    yield with_entries(stream, [_plain(entry, namespaces=()) for entry in stream.entries])
    yield renumbered(stream)


def _at(entry: Entry, old: int, new: int) -> Entry:
    return msgspec.structs.replace(entry, worker=new) if entry.worker == old else entry


def _plain(entry: Entry, **fields: object) -> Entry:
    return msgspec.structs.replace(entry, **fields) if isinstance(entry, Sent) else entry

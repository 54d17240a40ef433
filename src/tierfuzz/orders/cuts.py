"""Ways to make a stream smaller: fewer pages, flatter trees, merged events, fewer sources."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from tierfuzz.events import AllBlocksCleared, BlockRemoved, BlockStored, KvEvent
from tierfuzz.hashing import extend_chain, signed64
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
    """Hashes and tokens of the blocks that stay, and what each block of the stream now hangs from."""

    hashes: Mapping[int, int]
    tokens: Mapping[int, tuple[int, ...]]
    above: Mapping[int, int | None]
    gone: Collection[int] = ()

    def event(self, event: KvEvent) -> KvEvent | None:
        """The event about the blocks that stay; a store goes on after one that is gone."""
        if isinstance(event, AllBlocksCleared):
            return event
        kept = [block for block in event.hashes if block not in self.gone]
        hashes = tuple(self.hashes.get(block, block) for block in kept)
        if not kept:
            return None
        if isinstance(event, BlockRemoved):
            return BlockRemoved(hashes, event.medium)
        tokens = tuple(token for block in kept for token in self.tokens[block])
        above = self.above[kept[0]]
        parent = None if above is None else self.hashes.get(above, above)
        return msgspec.structs.replace(event, hashes=hashes, tokens=tokens, parent=parent)


def lifted(stream: Stream, gone: Collection[int]) -> Stream | None:
    """Without some pages; what is below one moves up. None where pages could not be told apart then."""
    pages = Pages(stream)
    kept = [block for block in pages.blocks if block not in gone]
    above = {block: _nearest(pages, block, gone) for block in kept}
    return _rebuilt(stream, {block: pages.tokens(block) for block in kept}, above, gone)


def renumbered(stream: Stream) -> Stream | None:
    """Pages named anew in order of appearance: page k is token k, over and over."""
    pages = Pages(stream)
    tokens = {block: (number,) * pages.size for number, block in enumerate(pages.blocks, 1)}
    return _rebuilt(stream, tokens, {block: pages.parent(block) for block in pages.blocks})


def _nearest(pages: Pages, block: int, gone: Collection[int]) -> int | None:
    above = pages.parent(block)
    while above in gone and above is not None:
        above = pages.parent(above)
    return above


def _rebuilt(
    stream: Stream,
    tokens: Mapping[int, tuple[int, ...]],
    above: Mapping[int, int | None],
    gone: Collection[int] = (),
) -> Stream | None:
    """Pages with these tokens below one another, and the hashes that follow (engine-semantics 3.4)."""
    digests: dict[int, bytes] = {}
    for block in tokens:
        chain = [block]
        while (at := above.get(chain[-1])) is not None and at in tokens and at not in digests:
            chain.append(at)
        for one in reversed(chain):
            before = above[one]
            digests[one] = extend_chain(digests.get(before, b"") if before is not None else b"", tokens[one])
    hashes = {block: signed64(digest) for block, digest in digests.items()}
    if len(set(hashes.values())) < len(hashes):
        return None
    shared = frozenset(hashes[block] for block in stream.shared if block in hashes)
    changed = _changed(stream, _Names(hashes, tokens, above, gone).event)
    return msgspec.structs.replace(changed, shared=shared)


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
    """One source fewer, no ranks, no namespaces."""
    workers = sorted({entry.worker for entry in stream.entries})
    for old in workers:
        for new in range(old):
            yield with_entries(stream, [_at(entry, old, new) for entry in stream.entries])
    yield with_entries(stream, [_plain(entry, rank=0) for entry in stream.entries])
    yield with_entries(stream, [_plain(entry, namespaces=()) for entry in stream.entries])


def _at(entry: Entry, old: int, new: int) -> Entry:
    return msgspec.structs.replace(entry, worker=new) if entry.worker == old else entry


def _plain(entry: Entry, **fields: object) -> Entry:
    return msgspec.structs.replace(entry, **fields) if isinstance(entry, Sent) else entry

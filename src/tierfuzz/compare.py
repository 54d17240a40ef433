"""Compares predicted operations with a recording: results, event windows, batch boundaries (reference 9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from tierfuzz.events import AllBlocksCleared, BlockRemoved, BlockStored, KvEvent, Tier
from tierfuzz.model.replay import OpResult
from tierfuzz.recording import OpRecord, Recording, windows

MOST_DIFFERENCES = 5
EventKey = tuple[object, ...]


@dataclass
class Comparison:
    """Agreement of one file. `late`: windows whose only difference is host stores one poll later;
    `spilt`: windows that agree once events published after the next call are moved back;
    `unpublished`: predicted idle batches whose events went out with a later batch;
    `regrouped`: blocks after which one side ends an event and the other does not (map form only)."""

    results: int = 0
    results_ok: int = 0
    windows: int = 0
    windows_ok: int = 0
    late: int = 0
    spilt: int = 0
    boundaries: int = 0
    boundaries_ok: int = 0
    boundaries_late: int = 0
    unpublished: int = 0
    regrouped: int = 0
    differences: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Everything agrees."""
        return (
            self.results_ok == self.results
            and self.windows_ok == self.windows
            and self.boundaries_ok + self.boundaries_late == self.boundaries
            and not self.regrouped
        )

    def differs(self, text: str) -> None:
        """Note a difference; only the first few are kept."""
        if len(self.differences) < MOST_DIFFERENCES:
            self.differences.append(text)


def compare(recording: Recording, predicted: list[OpResult]) -> Comparison:
    """Compare operation by operation; `predicted` has one entry an operation of the recording."""
    found = Comparison()
    for number, (op, result) in enumerate(zip(recording.ops, predicted, strict=True)):
        if op.op == "generate":
            _compare_result(found, number, op, result)
    _Windows(found, recording, predicted).compare()
    _compare_boundaries(found, recording, predicted)
    if _merges(recording):
        _compare_grouping(found, recording, predicted)
    return found


def _merges(recording: Recording) -> bool:
    """The engine merges neighbouring events, so windows are compared block by block."""
    return any(isinstance(event, dict) for batch in recording.batches for event in batch.events)


def _compare_result(found: Comparison, number: int, op: OpRecord, result: OpResult) -> None:
    found.results += 1
    expected = (result.cached_tokens, result.split)
    seen = (op.cached_tokens, op.cached_tokens_details)
    if expected == seen:
        found.results_ok += 1
    else:
        found.differs(f"op {number}: expected cached {_reply(*expected)}, seen {_reply(*seen)}")


def _reply(cached: object, split: object) -> str:
    return f"{cached} {split}"


def event_key(event: KvEvent) -> EventKey:
    """What is compared of an event: kind, medium, hashes in order, parent."""
    if isinstance(event, BlockStored):
        return ("store", event.medium, event.hashes, event.parent)
    if isinstance(event, BlockRemoved):
        return ("remove", event.medium, event.hashes)
    return ("clear",)


def block_keys(event: KvEvent) -> list[EventKey]:
    """The same, one entry a block."""
    if isinstance(event, BlockStored):
        parents = (event.parent, *event.hashes)
        return [("store", event.medium, (h,), p) for h, p in zip(event.hashes, parents, strict=False)]
    if isinstance(event, BlockRemoved):
        return [("remove", event.medium, (block,)) for block in event.hashes]
    return [("clear",)]


def _single_key(event: KvEvent) -> list[EventKey]:
    return [event_key(event)]


def _flat(keys: Callable[[KvEvent], list[EventKey]], events: Sequence[KvEvent]) -> list[EventKey]:
    return [key for event in events for key in keys(event)]


def _is_host_store(key: EventKey) -> bool:
    return key[:2] == ("store", "CPU_PINNED")


class _Windows:
    """Windows by publish time first; where the client went on early, by position in the stream."""

    def __init__(self, found: Comparison, recording: Recording, predicted: list[OpResult]) -> None:
        self.found = found
        keys = block_keys if _merges(recording) else _single_key
        self.expected = [_flat(keys, [e for batch in op.batches for e in batch]) for op in predicted]
        self.by_time = [_flat(keys, [event for _, event in window]) for window in windows(recording)]
        self.stream = _flat(keys, [event for events in recording.typed for event in events])
        self.at = 0

    def compare(self) -> None:
        """Count every window, and resynchronise after one that differs."""
        ends = 0
        for number, (expected, timed) in enumerate(zip(self.expected, self.by_time, strict=True)):
            ends += len(timed)
            self.found.windows += 1
            if self._agrees(expected, timed):
                self.found.windows_ok += 1
                self.at += len(expected)
            else:
                self.found.differs(self._describe(number, expected, timed))
                self.at = ends

    def _agrees(self, expected: list[EventKey], timed: list[EventKey]) -> bool:
        here = self.stream[self.at : self.at + len(expected)]
        if expected == timed and here == expected:
            return True
        if here == expected[: len(here)] and (len(here) == len(expected) or self._at_end(here)):
            self.found.spilt += 1
            return True
        if _only_late(expected, here):
            self.found.late += 1
            return True
        return False

    def _at_end(self, here: list[EventKey]) -> bool:
        return self.at + len(here) == len(self.stream)

    def _describe(self, number: int, expected: list[EventKey], timed: list[EventKey]) -> str:
        pairs = zip(expected, timed, strict=False)
        at = next((i for i, (left, right) in enumerate(pairs) if left != right), None)
        if at is None:
            at = min(len(expected), len(timed))
        left = _short(expected[at]) if at < len(expected) else "nothing more"
        right = _short(timed[at]) if at < len(timed) else "nothing more"
        return f"op {number}: event {at} of its window: expected {left}, seen {right}"


def _only_late(expected: list[EventKey], seen: list[EventKey]) -> bool:
    """The same events; all but host stores in the same order, and no host store earlier."""
    if Counter(expected) != Counter(seen):
        return False
    others = [key for key in expected if not _is_host_store(key)]
    if others != [key for key in seen if not _is_host_store(key)]:
        return False
    places = {key: at for at, key in enumerate(expected)}
    return all(seen.index(key) >= at for key, at in places.items() if _is_host_store(key))


def _short(key: EventKey) -> str:
    if len(key) == 1:
        return str(key[0])
    hashes = key[2]
    assert isinstance(hashes, tuple)
    return f"{key[0]} {key[1]} of {len(hashes)} blocks from {hashes[0]}"


def _blocks(event: KvEvent) -> int:
    return 1 if isinstance(event, AllBlocksCleared) else len(event.hashes)


def _ends(groups: Iterable[int]) -> list[int]:
    """Running totals: after how many blocks each group ends."""
    return list(accumulate(groups))


def _op_ends(predicted: list[OpResult]) -> set[int]:
    return set(_ends(sum(_blocks(e) for batch in op.batches for e in batch) for op in predicted))


def _compare_boundaries(found: Comparison, recording: Recording, predicted: list[OpResult]) -> None:
    """Recorded batch ends that the model has too, counted in blocks from the start."""
    ends = set(_ends(sum(map(_blocks, batch)) for op in predicted for batch in op.batches))
    seen = _ends(sum(map(_blocks, events)) for events in recording.typed)
    host_store = [
        isinstance(event, BlockStored) and event.tier is Tier.HOST
        for events in recording.typed
        for event in events
        for _ in range(_blocks(event))
    ]
    wrong = [end for end in seen if end not in ends]
    late = [end for end in wrong if _late(end, ends, host_store)]
    missing = {end for end in ends - set(seen) if seen and end <= seen[-1]}
    found.unpublished = len(missing & _op_ends(predicted))
    extra = [end for end in missing - _op_ends(predicted) if not _late(end, set(seen), host_store)]
    found.boundaries, found.boundaries_late = len(seen) + len(extra), len(late)
    found.boundaries_ok = len(seen) - len(wrong)
    for end in sorted(set(wrong) - set(late)) + sorted(extra):
        who = "the recording, not the model" if end in wrong else "the model, not the recording"
        found.differs(f"batch boundary after block {end}: only in {who}")


def _compare_grouping(found: Comparison, recording: Recording, predicted: list[OpResult]) -> None:
    """Where events end; an idle batch that was not published may merge across operations."""
    ends = set(_ends(_blocks(e) for op in predicted for batch in op.batches for e in batch))
    seen = set(_ends(_blocks(e) for events in recording.typed for e in events))
    last = max(seen, default=0)
    wrong = {end for end in ends ^ seen if end <= last} - _op_ends(predicted)
    found.regrouped = len(wrong)
    for end in sorted(wrong):
        found.differs(f"event end after block {end}: only in {'recording' if end in seen else 'model'}")


def _late(end: int, others: set[int], host_store: list[bool]) -> bool:
    """Only host stores lie between this boundary and the nearest one of the other side."""
    for step in (-1, 1):
        at = end
        while 0 < at < len(host_store) and host_store[at - 1 if step < 0 else at]:
            at += step
            if at in others:
                return True
    return False

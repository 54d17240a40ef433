"""Which operations of a recording overlap, and which events belong to each group of them.

Events are placed by publish time. A client that goes on early calls again before the last of them (series 3
of the recordings): stores that the requests before still owe, and all that stands before them, go back.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass

from tierfuzz.events import AllBlocksCleared, Batch, BlockRemoved, BlockStored, KvEvent, Tier
from tierfuzz.hashing import page_hashes
from tierfuzz.ledger import Ledger
from tierfuzz.prompts import tokens_of
from tierfuzz.recording import OPERATION_START_S, Header, OpRecord, Recording

ROUNDING_S = 0.001  # times of a recording are rounded
FARTHEST = 3  # groups that events of one group can be late by
Numbered = list[tuple[int, OpRecord]]


@dataclass(frozen=True)
class Group:
    """Operations that overlap (one alone, mostly), numbered, and the events until the next group begins."""

    ops: Numbered
    events: list[KvEvent]


def groups_of(recording: Recording) -> list[Group]:
    """Operations by overlap in time, events by publish time (recordings' rule), late ones given back."""
    grouped = _overlapping(recording.ops)
    # a prefetch begins as soon as its request arrives, before the end of the last one may be published
    delay = 0.0 if recording.header.storage_backend else OPERATION_START_S
    starts = [_start(ops[0][1], delay) for ops in grouped]
    shift = min((batch.t - batch.ts for batch in recording.batches), default=0.0)
    events: list[list[KvEvent]] = [[] for _ in grouped]
    for batch in recording.batches:
        at = max(0, bisect.bisect_right(starts, batch.ts + shift) - 1)
        events[at] += batch.typed()
    groups = [Group(ops, found) for ops, found in zip(grouped, events, strict=True)]
    _give_back(recording.header, groups)
    return groups


def _overlapping(ops: list[OpRecord]) -> list[Numbered]:
    grouped: list[Numbered] = []
    ends = float("-inf")
    for number, op in enumerate(ops):
        slack = 0.0 if op.burst else ROUNDING_S
        if op.t + slack >= ends or op.op == "flush" or not grouped:
            grouped.append([])
            ends = float("-inf")
        grouped[-1].append((number, op))
        ends = max(ends, op.t + op.ms / 1000)
    return grouped


def _start(op: OpRecord, delay: float) -> float:
    return op.t + (delay if op.op == "generate" else 0.0)


# late events ---------------------------------------------------------------------------------------
def _give_back(header: Header, groups: list[Group]) -> None:
    """Move late events to the group before, the first group first: what it owes depends on what it has."""
    owed = _Owed(header)
    for number, before in enumerate(groups):
        owed.follow(before)
        for after, group in enumerate(groups[number + 1 : number + 1 + FARTHEST]):
            flush = group.ops[0][1].op == "flush"
            late = _until_clear(group) if flush and after == 0 else owed.late(group)
            before.events.extend(group.events[:late])
            owed.book(group.events[:late])
            del group.events[:late]
            if group.events or flush:
                break  # otherwise all of that was late, and there may be more


def _until_clear(flush: Group) -> int:
    """What stands before the clear of a flush is of the requests before it."""
    return next((at for at, event in enumerate(flush.events) if isinstance(event, AllBlocksCleared)), 0)


class _Owed:
    """What the requests of one group have not announced by the time that the next begins."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._ledger = Ledger()
        self._chains: set[int] = set()
        self._pages: set[int] = set()
        self._copies: set[int] = set()

    def follow(self, group: Group) -> None:
        """A whole group: pages that it must insert (6.2-2), copies that write_through must make."""
        self.book(group.events)
        gone = {h for event in group.events if isinstance(event, BlockRemoved) for h in event.hashes}
        self._chains = {h for _, op in group.ops for h in _chain(op, self._header)}
        sure = {h for _, op in group.ops if op.finish != "abort" for h in _chain(op, self._header, sure=True)}
        self._pages = {h for h in sure - gone if not self._held(h)}
        self._copies = {
            h
            for event in group.events
            if isinstance(event, BlockStored) and event.tier is Tier.DEVICE
            for h in event.hashes
            if not self._ledger.resident(0, Tier.HOST, h)
        }

    def book(self, events: list[KvEvent]) -> None:
        """Events of the group."""
        self._ledger.apply(Batch(0, 0.0, 0, tuple(events)))

    def _held(self, h: int) -> bool:
        return any(self._ledger.resident(0, tier, h) for tier in (Tier.DEVICE, Tier.HOST))

    def late(self, group: Group) -> int:
        """How many events at the start of the next group are late: up to the last store that is owed, or
        that is of pages of the group before and of none of its own."""
        own = {h for _, op in group.ops for h in _chain(op, self._header)}
        late = 0
        for at, event in enumerate(group.events):
            if isinstance(event, BlockStored):
                if self._is_late(event, own):
                    late = at + 1
                    self._pages -= set(event.hashes)
                    self._copies -= set(event.hashes) if event.tier is Tier.HOST else set()
                elif event.tier is Tier.DEVICE:
                    break  # the group's own: what follows is of the group too
        return late

    def _is_late(self, event: BlockStored, own: set[int]) -> bool:
        policy, hashes = self._header.write_policy, set(event.hashes)
        if not hashes <= self._chains:
            return False
        if event.tier is Tier.DEVICE:
            return not hashes <= own or bool(hashes & self._pages)
        if policy == "write_back":  # a host store can be of any page
            return False
        return not hashes <= own or (policy == "write_through" and hashes <= self._copies)


def _chain(op: OpRecord, header: Header, *, sure: bool = False) -> tuple[int, ...]:
    """Pages of the prompt and its answer; `sure`: those that are inserted in any case (6.2-2)."""
    outputs = op.output_ids or ()
    tokens = (*tokens_of(op.prompt), *outputs)
    return page_hashes(tokens[: len(tokens) - bool(sure and outputs)], header.page_size)

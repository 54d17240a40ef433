"""What went wrong, for people and for programs: events, answers beside the right ones, whose fault."""

from __future__ import annotations

import msgspec

from tierfuzz.events import AllBlocksCleared, BlockRemoved, BlockStored, KvEvent
from tierfuzz.model.rules import PROFILES
from tierfuzz.orders.check import Answer, Finding, follow
from tierfuzz.orders.legality import explain
from tierfuzz.orders.reduce import Reduced
from tierfuzz.orders.stream import Entry, Restarted, Stream
from tierfuzz.orders.tried import Make
from tierfuzz.program import WRITE_POLICIES

Figures = dict[str, int]


class Row(msgspec.Struct, frozen=True):
    """One message, and after it the answer beside the right ones (pages by tier, by reading)."""

    message: str
    answered: Figures | None
    right: dict[str, Figures]


class Order(msgspec.Struct, frozen=True):
    """Whether an engine under a policy may send the events in this order; `why` not, after which message."""

    policy: str
    profile: str
    why: str = ""
    family: str = ""
    message: int | None = None


class Story(msgspec.Struct, frozen=True):
    """A minimal stream on which a consumer is wrong. `events_before` and `runs`: what the shrinking started
    from and took; `asked`: the prompt, page by page; `worker` and `rank`: about whom."""

    consumer: str
    kind: str
    detail: str
    worker: int
    rank: int
    asked: list[str]
    rows: list[Row]
    orders: list[Order]
    events: int
    events_before: int
    runs: int
    minimal: bool


class _Names:
    """Short names of blocks, in order of appearance."""

    def __init__(self) -> None:
        self._of: dict[int, str] = {}

    def of(self, block: int) -> str:
        return self._of.setdefault(block, f"p{len(self._of) + 1}")

    def entry(self, entry: Entry) -> str:
        if isinstance(entry, Restarted):
            return f"worker {entry.worker}: restarts, empty"
        where = f"worker {entry.worker}" + (f" rank {entry.rank}" if entry.rank else "")
        events = (self._event(event, entry.namespace(at)) for at, event in enumerate(entry.events))
        return f"{where}: " + "; ".join(events)

    def _event(self, event: KvEvent, namespace: str) -> str:
        if isinstance(event, AllBlocksCleared):
            return "clear"
        of = f" (namespace {namespace})" if namespace else ""
        after = ""
        if isinstance(event, BlockStored) and event.parent is not None:
            after = f" after {self.of(event.parent)}"
        verb = "remove" if isinstance(event, BlockRemoved) else "store"
        return f"{verb} {event.tier} {' '.join(map(self.of, event.hashes))}{after}{of}"


def story(consumer: str, make: Make, before: Stream, reduced: Reduced, reading: str = "either") -> Story:
    """Tell what shrinking left."""
    finding, stream, names = reduced.finding, reduced.stream, _Names()
    return Story(
        consumer,
        finding.kind,
        finding.detail,
        *finding.source,
        rows=_rows(stream, make, finding, names, reading),
        asked=_asked(finding, names),
        orders=_orders(stream),
        events=stream.events,
        events_before=before.events,
        runs=reduced.runs,
        minimal=reduced.minimal,
    )


def _rows(stream: Stream, make: Make, finding: Finding, names: _Names, reading: str) -> list[Row]:
    looks = list(follow(stream, make, finding, reading))
    rows = []
    for index, entry in enumerate(stream.entries):
        message = names.entry(entry)
        if index < len(looks):
            right = {name: _figures(answer) for name, answer in looks[index].right.items()}
            rows.append(Row(message, _figures(looks[index].answered), right))
        else:
            rows.append(Row(message, None, {}))
    return rows


def _figures(answer: Answer) -> Figures:
    return {str(tier): pages for tier, pages in answer.items()}


def _asked(finding: Finding, names: _Names) -> list[str]:
    """A prompt of pages that are no chain from the root (a page of the middle, alone) has no names."""
    return [names.of(block) for block in finding.probe.blocks]


def _orders(stream: Stream) -> list[Order]:
    """The stream against the legal orders of every policy of its engine, and of the other engines."""
    profiles = [stream.profile, *(name for name in PROFILES if name not in (stream.profile, "default"))]
    own = [(policy, stream.profile) for policy in WRITE_POLICIES if policy != stream.policy]
    others = [(stream.policy, profile) for profile in profiles[1:]]
    return [
        _order(stream, policy, profile) for policy, profile in [(stream.policy, profiles[0]), *own, *others]
    ]


def _order(stream: Stream, policy: str, profile: str) -> Order:
    illegal = explain(msgspec.structs.replace(stream, policy=policy, profile=profile))
    if illegal is None:
        return Order(policy, profile)
    return Order(policy, profile, illegal.why, illegal.family, illegal.entry)

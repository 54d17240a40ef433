"""Oracles over requests that overlap: what held on real bursts (reference 6.6, O3 and O6 to O9).

A burst begins and ends at rest; in between only events say what happened, never a forecast.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tierfuzz.eventview import EventView, PrefixView
from tierfuzz.forecast.history import common_prefix
from tierfuzz.observation import Observation, TierSplit
from tierfuzz.oracles.docket import Docket
from tierfuzz.oracles.replies import Expectation


@dataclass
class Member:
    """One request of a burst: what was known at rest before it, and its reply (None: never started)."""

    expected: Expectation
    view: PrefixView
    host_only: tuple[bool, ...]
    ambiguous: bool
    seen: Observation | None = None
    hashes: tuple[int, ...] = ()

    @property
    def usable(self) -> tuple[int, ...]:
        """Pages that a match may use."""
        return self.expected.hashes[: self.expected.forecast.limit]


@dataclass
class BurstWatch:
    """Collects a burst. `left`: blocks of which no copy was announced at some moment; `loads`: device stores
    of blocks that were on host at that moment; `stored`: blocks stored on device."""

    members: list[Member] = field(default_factory=list)
    left: set[int] = field(default_factory=set)
    stored: set[int] = field(default_factory=set)
    loads: int = 0
    loads_ambiguous: bool = False

    def note(self, operation: str, seen: Observation, hashes: tuple[int, ...]) -> None:
        """The reply of a member, and all pages of its prompt and answer."""
        for member in self.members:
            if member.expected.operation == operation:
                member.seen, member.hashes = seen, hashes

    def store(self, view: EventView, h: int) -> None:
        """A device store, before it is booked."""
        self.stored.add(h)
        if view.on_host(h):
            self.loads += 1
            self.loads_ambiguous = self.loads_ambiguous or view.ambiguous(h) or bool(view.on_device(h))

    def removed(self, view: EventView, h: int) -> None:
        """A removal, after it was booked."""
        if not view.on_device(h) and not view.on_host(h):
            self.left.add(h)


def member_of(expected: Expectation, view: EventView) -> Member:
    """What events say of a prompt at rest, before the burst."""
    usable = expected.hashes[: expected.forecast.limit]
    return Member(
        expected,
        view.prefix(expected.namespace, usable),
        tuple(_host_only(view, expected.namespace, h) for h in usable),
        any(view.ambiguous(h) for h in usable),
    )


def _host_only(view: EventView, namespace: str, h: int) -> bool:
    return view.surely_on_host(namespace, h) and not view.on_device(h) and not view.may_be_revived(h)


def check_burst(docket: Docket, page: int, watch: BurstWatch, view: EventView, silent_revival: bool) -> None:
    """At rest after a burst."""
    started = [member for member in watch.members if member.seen and member.seen.prompt_tokens is not None]
    for member in started:
        _check_served(docket, page, watch, member)
        _check_most(docket, page, watch, member)
        _check_inserted(docket, page, watch, member, view)
    _check_loads(docket, page, watch, started, silent_revival)
    _check_host_pages(docket, page, started)


def _split(member: Member) -> TierSplit:
    assert member.seen is not None
    return member.seen.split or TierSplit()


def _cached(member: Member, page: int) -> int:
    assert member.seen is not None
    return (member.seen.cached_tokens or 0) // page


def _check_served(docket: Docket, page: int, watch: BurstWatch, member: Member) -> None:
    """O6: pages surely in the tree before, which no event shows leaving, are served."""
    sure = member.usable[: member.view.total.low]
    stayed = next((i for i, h in enumerate(sure) if h in watch.left), len(sure))
    if stayed and page >= 10:
        cached = _cached(member, page)
        docket.check(
            cached >= stayed,
            "overlap-miss",
            member.expected.operation,
            f"{cached} pages cached in a burst; {stayed} were in the tree before it and never left",
            facts={"cached_pages": cached, "stayed": stayed},
        )


def _check_most(docket: Docket, page: int, watch: BurstWatch, member: Member) -> None:
    """O9: not more than was there before or than a mate of the burst may have brought."""
    mates = [
        m for m in watch.members if m is not member and m.expected.namespace == member.expected.namespace
    ]
    shared = max((common_prefix(member.usable, m.expected.hashes) for m in mates), default=0)
    cached, device = _cached(member, page), _split(member).device // page
    most, most_device = max(member.view.total.high, shared), max(member.view.device.high, shared)
    docket.check(
        cached <= most and device <= most_device,
        "overlap-excess",
        member.expected.operation,
        f"{cached} pages cached in a burst, {device} of them from device; at most {most} and {most_device} "
        "were there before or can have come from a mate",
        facts={"cached_pages": cached, "device_pages": device, "most": most, "most_device": most_device},
    )


def _check_inserted(docket: Docket, page: int, watch: BurstWatch, member: Member, view: EventView) -> None:
    """O3: fl(P+n-1) pages are in the tree at the end (fl(P) if n = 0), and so were announced."""
    assert member.seen is not None
    outputs = len(member.seen.output_ids)
    sure = (len(member.expected.tokens) + max(0, outputs - 1)) // page
    silent = [
        h
        for h in member.hashes[:sure]
        if h not in watch.stored and h not in watch.left and not view.on_device(h) and not view.on_host(h)
    ]
    docket.check(
        not silent,
        "insert-bound",
        member.expected.operation,
        f"{len(silent)} of the first {sure} pages of a finished request were never announced",
        facts={"missing": len(silent), "sure": sure},
    )


def _check_loads(
    docket: Docket, page: int, watch: BurstWatch, started: list[Member], silent_revival: bool
) -> None:
    """O7: host pages reported in a burst = device stores of pages that were on host."""
    reported = sum(_split(member).host // page for member in started)
    if watch.loads_ambiguous or any(member.ambiguous for member in started) or page < 10:
        return
    spare = 0 if silent_revival else sum(len(m.hashes) - m.expected.forecast.limit for m in started)
    docket.check(
        watch.loads - spare <= reported <= watch.loads,
        "load-accounting",
        started[0].expected.operation if started else "",
        f"{reported} host pages reported in a burst; events show {watch.loads} pages loaded"
        + (f", {spare} of them perhaps recomputed" if spare else ""),
        facts={"reported": reported, "loads": watch.loads, "spare": spare},
    )


def _check_host_pages(docket: Docket, page: int, started: list[Member]) -> None:
    """O8: a page that was host-only and was served came from host for at least one of those served."""
    served: dict[tuple[str, int], bool] = {}
    for member in started:
        split, cached = _split(member), _cached(member, page)
        for index, h in enumerate(member.usable[:cached]):
            if index < len(member.host_only) and member.host_only[index]:
                key = (member.expected.namespace, h)
                from_host = split.device // page <= index
                served[key] = served.get(key, False) or from_host
    if served:
        missing = sum(not from_host for from_host in served.values())
        docket.check(
            not missing,
            "host-unseen",
            started[0].expected.operation,
            f"{missing} of {len(served)} pages that were on host only before a burst were served, and nobody "
            "reports them as host",
            facts={"missing": missing, "pages": len(served)},
        )

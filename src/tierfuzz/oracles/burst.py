"""Oracles over what happens from rest to rest: one request, or some that overlap (6.6, O3, O6 to O9).

In between only events say what happened, never a forecast.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tierfuzz.events import Tier
from tierfuzz.eventview import EventView, PrefixView
from tierfuzz.forecast.history import PageKey
from tierfuzz.observation import Observation, TierSplit
from tierfuzz.oracles.docket import Docket
from tierfuzz.oracles.replies import LOAD_BACK_LEAST, Expectation
from tierfuzz.program import FleetConfig


@dataclass
class Member:
    """One request: what was known at rest before it, and its reply (None: never started)."""

    expected: Expectation
    view: PrefixView
    host_only: tuple[bool, ...]
    seen: Observation | None = None
    hashes: tuple[int, ...] = ()

    @property
    def usable(self) -> tuple[int, ...]:
        """Pages that a match may use."""
        return self.expected.hashes[: self.expected.forecast.limit]

    @property
    def split(self) -> TierSplit:
        """Where its cached tokens came from."""
        return (self.seen and self.seen.split) or TierSplit()

    def cached(self, page: int) -> int:
        """Cached pages."""
        return ((self.seen and self.seen.cached_tokens) or 0) // page


@dataclass
class BurstWatch:
    """Collects what happens from rest to rest. `left`: pages of which at some moment no copy was sure;
    `removed`, `stored`: blocks that events name; `sure_loads`, `loads`: device stores of pages that were, or
    may have been, on host then."""

    members: list[Member] = field(default_factory=list)
    left: set[PageKey] = field(default_factory=set)
    removed: set[int] = field(default_factory=set)
    stored: set[int] = field(default_factory=set)
    sure_loads: Counter[int] = field(default_factory=Counter)
    loads: Counter[int] = field(default_factory=Counter)

    def note(self, operation: str, seen: Observation, hashes: tuple[int, ...]) -> None:
        """The reply of a member, and all pages of its prompt and answer."""
        for member in self.members:
            if member.expected.operation == operation:
                member.seen, member.hashes = seen, hashes

    def before_store(self, view: EventView, h: int) -> None:
        """A device store, before it is booked."""
        self.stored.add(h)
        new = [who for who in view.suspects(Tier.DEVICE, h) if not view.surely_on_device(who, h)]
        sure = all(view.surely_on_host(who, h) for who in new) and not view.newcomer_possible(h)
        may = any(view.may_be_on(Tier.HOST, who, h) for who in new)
        self.sure_loads[h] += may and sure
        self.loads[h] += may

    def after_removal(self, view: EventView, h: int) -> None:
        """A removal, after it was booked."""
        self.removed.add(h)
        self.left.update((who, h) for who in view.owners(h) if not view.surely_held(who, h))

    @property
    def started(self) -> list[Member]:
        """Those that reached the scheduler."""
        return [m for m in self.members if m.seen and m.seen.prompt_tokens is not None]

    @property
    def retracted(self) -> bool:
        """Some member had to wait again: loads for its second admission are in no reply (2.1, 6.3)."""
        return any(m.seen and m.seen.retractions for m in self.members)


def member_of(expected: Expectation, view: EventView) -> Member:
    """What events say of a prompt at rest, before it is sent."""
    usable = expected.hashes[: expected.forecast.limit]
    prefix = view.prefix(expected.namespace, usable)
    host_only = (
        index >= prefix.device.high and _host_only(view, expected.namespace, h)
        for index, h in enumerate(usable)
    )
    return Member(expected, prefix, tuple(host_only))


def _host_only(view: EventView, namespace: str, h: int) -> bool:
    return view.surely_on_host(namespace, h) and not view.may_be_on(Tier.DEVICE, namespace, h)


def check_burst(docket: Docket, fleet: FleetConfig, watch: BurstWatch, view: EventView, silent: bool) -> None:
    """At rest afterwards; `silent`: revivals are (B7). The reply of a lone request was judged already."""
    page = fleet.page_size
    for member in watch.started:
        check_inserted(docket, fleet, watch, member, view)
        if not member.expected.alone:
            _check_served(docket, page, watch, member)
            _check_most(docket, page, member)
    if len(watch.members) > 1 and page >= LOAD_BACK_LEAST and not watch.retracted:
        _check_host_pages(docket, page, watch.started)
    if watch.started:
        _check_loads(docket, page, watch, silent)


def learn_from(view: EventView, page: int, watch: BurstWatch) -> None:
    """Which namespace's copies are there: those that were served, where no event has removed the block."""
    for member in watch.started:
        device = member.split.device // page
        for index, h in enumerate(member.usable[: member.cached(page)]):
            if h not in watch.removed:
                tier = Tier.DEVICE if index < device else Tier.HOST
                view.learn(tier, member.expected.namespace, h)


def check_inserted(
    docket: Docket, fleet: FleetConfig, watch: BurstWatch, member: Member, view: EventView
) -> None:
    """O3: fl(P+n-1) pages are in the tree at the end (fl(P) if n = 0), and so were announced."""
    sure = _surely_inserted(fleet, watch, member)
    told, space = watch.stored | watch.removed, member.expected.namespace
    silent = [
        h
        for h in member.hashes[:sure]
        if h not in told and not any(view.may_be_on(tier, space, h) for tier in (Tier.DEVICE, Tier.HOST))
    ]
    docket.check(
        not silent,
        "insert-bound",
        member.expected.operation,
        f"{len(silent)} of the first {sure} pages of a finished request were never announced",
        facts={"missing": len(silent), "sure": sure},
    )


def _surely_inserted(fleet: FleetConfig, watch: BurstWatch, member: Member) -> int:
    """An abort between two chunks leaves an unknown part of the prompt in the tree."""
    assert member.seen is not None
    prompt, outputs = len(member.expected.tokens), len(member.seen.output_ids)
    chunked = sum(len(m.expected.tokens) for m in watch.members) > fleet.chunked_prefill
    if member.seen.status == "aborted" and chunked and not outputs:
        return 0
    return (prompt + max(0, outputs - 1)) // fleet.page_size


def _check_served(docket: Docket, page: int, watch: BurstWatch, member: Member) -> None:
    """O6: pages surely in the tree before, which no event shows leaving, are served."""
    sure, space = member.usable[: member.view.total.low], member.expected.namespace
    stayed = next((i for i, h in enumerate(sure) if (space, h) in watch.left), len(sure))
    if stayed and page >= LOAD_BACK_LEAST:
        cached = member.cached(page)
        docket.check(
            cached >= stayed,
            "overlap-miss",
            member.expected.operation,
            f"{cached} pages cached in a burst; {stayed} were in the tree before it and never left",
            facts={"cached_pages": cached, "stayed": stayed},
        )


def _check_most(docket: Docket, page: int, member: Member) -> None:
    """O9: not more than was there before or than a mate of the burst may have brought."""
    shared = member.expected.from_mates or 0
    cached, device = member.cached(page), member.split.device // page
    most, most_device = max(member.view.total.high, shared), max(member.view.device.high, shared)
    docket.check(
        cached <= most and device <= most_device,
        "overlap-excess",
        member.expected.operation,
        f"{cached} pages cached in a burst, {device} of them from device; at most {most} and {most_device} "
        "were there before or can have come from a mate",
        facts={"cached_pages": cached, "device_pages": device, "most": most, "most_device": most_device},
    )


def _check_loads(docket: Docket, page: int, watch: BurstWatch, silent: bool) -> None:
    """O7: host pages reported = device stores of pages that were on host."""
    if page < LOAD_BACK_LEAST:
        return
    reported = sum(member.split.host // page for member in watch.started)
    # where revivals are announced, a page that was computed anew is no load, although it was on host
    anew = set() if silent else {h for m in watch.started for h in m.hashes[m.cached(page) :]}
    sure = {} if watch.retracted else watch.sure_loads
    low = sum(times for h, times in sure.items() if h not in anew)
    high = watch.loads.total()
    docket.check(
        low <= reported <= high,
        "load-accounting",
        watch.started[0].expected.operation,
        f"{reported} host pages reported; events show {low} to {high} pages loaded",
        facts={"reported": reported, "loads_low": low, "loads_high": high},
    )


def _check_host_pages(docket: Docket, page: int, started: list[Member]) -> None:
    """O8: a page that was host-only and was served came from host for at least one of those served, unless
    one of them has computed it anew (a match stops at the last token, and where logprobs begin)."""
    served: dict[PageKey, bool] = {}
    anew = {(m.expected.namespace, h) for m in started for h in m.hashes[m.cached(page) :]}
    for member in started:
        for index, h in enumerate(member.usable[: member.cached(page)]):
            key = (member.expected.namespace, h)
            if member.host_only[index] and key not in anew:
                from_host = member.split.device // page <= index
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

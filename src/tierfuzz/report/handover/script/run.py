"""One run on workers that run already: what was answered, what events say, and when all is at rest."""

from __future__ import annotations

import threading
from typing import Any

from tierfuzz.report.handover.script.book import Book
from tierfuzz.report.handover.script.events import Events
from tierfuzz.report.handover.script.worker import GAUGES, Reply, Worker

Step = dict[str, Any]
LOOKS, PAUSE_S = 400, 0.025  # how often, and how far apart, to look whether something has happened
QUIET_LOOKS = 8
PAUSE = threading.Event()


class Undecided(Exception):
    """A check cannot be made, and why."""


class Run:
    """Workers, what they answered by request, and what their events say."""

    def __init__(self, setup: dict[str, Any], workers: list[Worker], events: list[Events | None]) -> None:
        self.setup, self.workers, self.events = setup, workers, events
        self.books = [Book(setup) for _ in workers]
        self.levels: list[dict[str, float]] = [{} for _ in workers]
        self.beyond: list[str] = []  # levels that no pool can have
        self.replies: dict[str, Reply] = {}
        self.expected: dict[str, Step] = {}
        self.groups: list[dict[str, Any]] = []
        self.failed: list[tuple[str, str]] = []
        self.prompts: dict[str, list[int]] = {}
        self.held: dict[int, int] = {}  # tokens sent to a worker since its copies are held back
        self.rested = [False for _ in workers]
        self.own = ""  # before the names of streams, where workers are not emptied
        self.bare = [0 for _ in workers]  # requests without outputs since rest

    # what was seen ---------------------------------------------------------------------------------
    def reply(self, request: str) -> Reply:
        found = self.replies.get(request)
        if found is None or "failed" in found or found["prompt"] is None:
            raise Undecided(f"{request} has no usable answer")
        return found

    def group(self, request: str) -> dict[str, Any]:
        """What belongs to the requests that were sent together with this one, from rest to rest."""
        return next(group for group in self.groups if request in group["ids"])

    def odd(self, oracle: str) -> str:
        """What events have shown for an oracle."""
        found = [text for book in self.books for slug, text in book.odd if slug == oracle]
        return f"{found[0]} ({len(found)} in all)" if found else ""

    def against_forecast(self) -> list[str]:
        """Replies that no engine of this policy may give, by the forecast of each request."""
        wrong = []
        for request, step in self.expected.items():
            seen = self.replies.get(request, {})
            if seen.get("prompt") is None or "most" not in step:
                continue
            host_only = step.get("host_only", 0)
            within = step.get("held", 0) <= seen["cached"] <= step["most"]
            if not within or (host_only and (seen["device"] or seen["host"] < host_only)):
                wrong.append(f"{request}: {told(seen)}; expected {step['expected']}")
        return wrong

    # events and rest -------------------------------------------------------------------------------
    def pull(self, index: int, show: bool = True) -> bool:
        """Book what has come from a worker; whether anything has."""
        events, book = self.events[index], self.books[index]
        batches = events.pull() if events else []
        for seq, payload in batches:
            for line in book.apply(seq, payload):
                if show:
                    print(f"        event {line}")
        if events:
            book.odd += [("sequence-gap", text) for text in events.gaps]
            book.odd += [("malformed-event", text) for text in events.odd]
            events.gaps.clear()
            events.odd.clear()
        return bool(batches)

    def rest(self, index: int, flushed: bool = False) -> bool:
        """Wait, within a bound, until nothing is in flight and every event is in hand."""
        if self.rested[index]:
            return True
        if index in self.held:
            self.pull(index)
            return False
        quiet = 0
        for _ in range(LOOKS):
            idle, asked = self._idle(index)
            needed = self._needed(index, asked)
            quiet = quiet + 1 if idle and not self.pull(index) else 0
            if quiet >= needed:
                self._at_rest(index, flushed)
                return True
            PAUSE.wait(0 if idle and needed == 1 else PAUSE_S)
        self.failed.append(("hang", f"worker {index} did not come to rest"))
        return False

    def _idle(self, index: int) -> tuple[bool, bool]:
        """Whether it is idle, and whether it could be asked: levels do not tell of copies in flight."""
        idle = self.workers[index].idle()
        if idle is not None:
            return idle, True
        levels = self.workers[index].gauges()
        return not any(levels.get(name, 0) for name in GAUGES), False

    def _needed(self, index: int, asked: bool) -> int:
        """Idle looks in a row without a new event; more where events may still be on their way."""
        events = self.events[index]
        sure = asked and (events is None or events.replayed)
        needed: int = self.setup["confirmations"]
        return needed if sure else max(needed, QUIET_LOOKS)

    def _at_rest(self, index: int, flushed: bool) -> None:
        if self.events[index]:
            self.books[index].at_rest(self.bare[index], flushed)
        self.bare[index] = 0
        self.rested[index] = True

    # control ---------------------------------------------------------------------------------------
    def release(self, index: int) -> None:
        if self.held.pop(index, None) is not None:
            self.rested[index] = False
            self.workers[index].ask("POST", "/sim/control", {"copies": "release"})

    def empty(self, index: int) -> None:
        """Flush, where that is allowed, and wait for rest; a worker that does not become idle hangs."""
        if not self.setup["empty"]:
            return
        if not self.workers[index].flush(self.setup["bound_s"]):
            self.failed.append(("hang", f"worker {index} was not idle enough for a flush"))
            return
        self.rested[index] = False
        self.rest(index, flushed=True)

    def finish(self) -> None:
        """Let everything land, and read the levels at rest."""
        for index, worker in enumerate(self.workers):
            self.release(index)
            if self.rest(index) and self.setup["fresh_gauges"]:
                gauges = worker.gauges()
                self.levels[index] = self.levels_from(index, gauges)
                self.beyond += self.beyond_pools(gauges)

    def levels_from(self, index: int, gauges: dict[str, float]) -> dict[str, float]:
        """What must be 0 at rest, by the names of the oracle."""
        found = {name: gauges[name] for name in GAUGES if name in gauges}
        page, device = self.setup["page"], self.setup["device_pages"] * self.setup["page"]
        if {"kv_available_tokens", "kv_evictable_tokens"} <= gauges.keys():
            free = gauges["kv_available_tokens"] + gauges["kv_evictable_tokens"]
            found["locked device tokens"] = device - free
        if "hicache_host_used_tokens" in gauges and self.events[index]:
            claimed = self.books[index].copies["host"].total() * page
            over = gauges["hicache_host_used_tokens"] - claimed
            found["host tokens used beyond those that events claim"] = over
        return found

    def beyond_pools(self, gauges: dict[str, float]) -> list[str]:
        """Levels below 0 or above their pool."""
        page = self.setup["page"]
        device, host = self.setup["device_pages"] * page, self.setup["host_pages"] * page
        free, evictable = gauges.get("kv_available_tokens", 0), gauges.get("kv_evictable_tokens", 0)
        used = gauges.get("hicache_host_used_tokens", 0)
        levels = (("free on device", free, device), ("free or evictable on device", free + evictable, device))
        return [
            f"{what}: {value:g} of {pool} tokens"
            for what, value, pool in (*levels, ("used on host", used, host))
            if not 0 <= value <= pool
        ]


def told(seen: Reply) -> str:
    """The accounting of a reply in words."""
    if "failed" in seen:
        return f"failed: {seen['failed']}"
    if seen["prompt"] is None:
        return "aborted before it started"
    split = " + ".join(f"{tier} {seen[tier]}" for tier in ("device", "host", "storage"))
    return f"cached {seen['cached']} = {split}{' (aborted)' if seen['aborted'] else ''}"

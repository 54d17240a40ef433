"""The smallest stream on which a consumer is still wrong in the same way, in an order as legal as before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tierfuzz.orders.check import Finding, Make, check
from tierfuzz.orders.cuts import lifted, merged, plainer, singles, trimmed, with_entries, without_pages
from tierfuzz.orders.legality import families
from tierfuzz.orders.pages import Pages
from tierfuzz.orders.stream import Entry, Stream
from tierfuzz.shrink.budget import Limits, Meter, OutOfBudget
from tierfuzz.shrink.ddmin import ddmin
from tierfuzz.shrink.memo import Remembered

DEFAULT_LIMITS = Limits(runs=5000)


@dataclass(frozen=True)
class Reduced:
    """What is left. `minimal`: without any one message, or any one page, it does not fail any more."""

    stream: Stream
    finding: Finding
    runs: int
    minimal: bool


class _Search:
    """Passes over one stream, until none of them finds anything smaller."""

    def __init__(self, stream: Stream, found: Finding, make: Make, reading: str, limits: Limits) -> None:
        self._make, self._reading = make, reading
        self._kind = found.kind
        self._allowed = families(stream)
        self.meter = Meter(limits)
        self.fails = Remembered(self._fails, self.meter, lambda s: s.entries, lambda s: s.events)
        self.best = stream
        self._until = found.entry + 1

    def _fails(self, stream: Stream) -> bool:
        """Wrong in the same way, in an order that is no more illegal than the whole was."""
        if not families(stream) <= self._allowed:
            return False
        found = check(stream, self._make, self._reading).findings
        return bool(found) and found[0].kind == self._kind

    def take(self, candidates: Iterable[Stream]) -> bool:
        """The first candidate that still fails becomes the best."""
        for candidate in candidates:
            if candidate.entries != self.best.entries and self.fails(candidate):
                self.best = candidate
                return True
        return False

    def messages(self) -> None:
        """Fewer messages, by delta debugging."""
        stream = self.best

        def fails(entries: tuple[Entry, ...]) -> bool:
            return self.fails(with_entries(stream, entries))

        self.best = with_entries(stream, ddmin(stream.entries, fails))

    def pages(self) -> None:
        """Fewer pages: half of a tree first, then page by page, and pages that others hang from."""
        while self.take(self._without_pages()) or self.take(trimmed(self.best)) or self.take(self._lifted()):
            pass

    def _without_pages(self) -> Iterable[Stream]:
        pages = Pages(self.best)
        for block in pages.blocks:
            yield without_pages(self.best, pages.below([block]))

    def _lifted(self) -> Iterable[Stream]:
        for block in Pages(self.best).blocks:
            if (candidate := lifted(self.best, block)) is not None:
                yield candidate

    def run(self) -> None:
        """All passes, until the stream stays as it is."""
        self.take([with_entries(self.best, self.best.entries[: self._until])])
        self.take([singles(self.best)])
        before: tuple[Entry, ...] = ()
        while before != self.best.entries:
            before = self.best.entries
            self.messages()
            self.pages()
            while self.take(merged(self.best)) or self.take(plainer(self.best)):
                pass

    def is_minimal(self) -> bool:
        """No single message and no single page can go."""
        entries = self.best.entries
        fewer = (with_entries(self.best, entries[:i] + entries[i + 1 :]) for i in range(len(entries)))
        return (
            not self.take(fewer)
            and not self.take(self._without_pages())
            and not self.take(trimmed(self.best))
        )


def reduce(
    stream: Stream,
    found: Finding,
    make: Make,
    reading: str = "either",
    limits: Limits = DEFAULT_LIMITS,
) -> Reduced:
    """Shrink a stream on which `check` gave `found`; what the budget leaves undone makes it not minimal."""
    search = _Search(stream, found, make, reading, limits)
    minimal = False
    try:
        search.run()
        minimal = search.is_minimal()
    except OutOfBudget:
        search.best = search.fails.best or search.best
    finding = check(search.best, make, reading).findings[0]
    return Reduced(search.best, finding, search.meter.runs, minimal)

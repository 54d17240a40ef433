"""The smallest stream on which a consumer is still wrong in the same way, in an order as legal as before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from tierfuzz.events import Tier
from tierfuzz.orders.check import Finding, check
from tierfuzz.orders.cuts import lifted, merged, plainer, renumbered, singles, trimmed, with_entries
from tierfuzz.orders.legality import audit, discipline
from tierfuzz.orders.pages import Pages
from tierfuzz.orders.stream import Entry, Stream
from tierfuzz.orders.tried import Make
from tierfuzz.shrink.budget import Limits, Meter, OutOfBudget
from tierfuzz.shrink.ddmin import ddmin
from tierfuzz.shrink.memo import Remembered

DEFAULT_LIMITS = Limits(runs=5000)
SHORT = 16  # messages; of that few every two and every run are tried


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
        self._kind, self._until = found.kind, found.entry + 1
        self.meter = Meter(limits)
        self.tried = Remembered(self._wrong, self.meter, lambda s: s.entries, lambda s: s.events)
        self._use(stream)

    def _use(self, stream: Stream) -> None:
        self.best = stream
        self._broken = _broken(stream)

    def fails(self, stream: Stream) -> bool:
        """Wrong in the same way, in an order that breaks no rule more often than the best so far."""
        return _broken(stream) <= self._broken and self.tried(stream)

    def _wrong(self, stream: Stream) -> bool:
        return bool(self.findings(stream))

    def findings(self, stream: Stream) -> list[Finding]:
        """The first wrong answer of the kind that is looked for."""
        return check(stream, self._make, self._reading, self._kind).findings

    def take(self, candidates: Iterable[Stream | None]) -> bool:
        """The first candidate that still fails becomes the best."""
        for candidate in candidates:
            if candidate is not None and candidate.entries != self.best.entries and self.fails(candidate):
                self._use(candidate)
                return True
        return False

    def legal_part(self) -> None:
        """Without the pages of illegal steps, where the consumer is wrong about others as well."""
        short = with_entries(self.best, self.best.entries[: self._until])
        if self.take(lifted(stream, _strays(stream)) for stream in (short, self.best)):
            return
        for rule in sorted({rule for rule, _, _ in self._broken}):
            self.take([lifted(self.best, _strays(self.best, rule))])

    def until_wrong(self) -> None:
        """Nothing after the message that showed it."""
        if found := self.findings(self.best):
            self.take([with_entries(self.best, self.best.entries[: found[0].entry + 1])])

    def asked_pages(self) -> None:
        """A guess that saves most runs on a long stream: only the pages that were asked about matter."""
        if found := self.findings(self.best):
            probe, pages = found[0].probe, Pages(self.best)
            alone = [block for block in pages.blocks if pages.tokens(block) == probe.tokens]
            kept = {one for block in (probe.blocks or alone) for one in (block, *pages.chain(block))}
            self.take([lifted(self.best, set(pages.blocks) - kept)])

    def messages(self) -> None:
        """Fewer messages, by delta debugging."""
        stream = self.best
        fewer = ddmin(stream.entries, lambda entries: self.fails(with_entries(stream, entries)))
        self._use(with_entries(stream, fewer))

    def pages(self) -> None:
        """Fewer pages, by delta debugging; then fewer in single events."""
        stream, blocks = self.best, Pages(self.best).blocks

        def fails(kept: tuple[int, ...]) -> bool:
            candidate = lifted(stream, set(blocks) - set(kept))
            return candidate is not None and self.fails(candidate)

        kept = ddmin(blocks, fails)
        self.take([lifted(stream, set(blocks) - set(kept))])
        while self.take(trimmed(self.best)):
            pass

    def run(self) -> None:
        """All passes, until the stream stays as it is."""
        self.legal_part()
        self.until_wrong()
        self.asked_pages()
        self.take([singles(self.best)])
        before: tuple[Entry, ...] = ()
        while before != self.best.entries:
            before = self.best.entries
            self.messages()
            self.take([renumbered(self.best)])  # no page looks like another, so that any can go
            self.pages()
            while self.take(merged(self.best)) or self.take(plainer(self.best)):
                pass
            if before == self.best.entries and len(before) <= SHORT:
                self.take(self._without_several())  # messages that only together are not needed

    def _without_several(self) -> Iterator[Stream]:
        """Less a run of messages, or two of them anywhere, the longest first."""
        entries = self.best.entries
        places = range(len(entries))
        runs = [set(range(start, stop)) for start, stop in combinations(range(len(entries) + 1), 2)]
        for gone in sorted(runs, key=len, reverse=True) + [set(pair) for pair in combinations(places, 2)]:
            yield with_entries(self.best, [entries[at] for at in places if at not in gone])

    def is_minimal(self) -> bool:
        """No single message and no single page can go."""
        entries = self.best.entries
        fewer = [with_entries(self.best, entries[:i] + entries[i + 1 :]) for i in range(len(entries))]
        flatter = [lifted(self.best, {block}) for block in Pages(self.best).blocks]
        return not self.take([*fewer, *flatter, *trimmed(self.best)])


def _strays(stream: Stream, rule: str = "") -> set[int]:
    """Blocks that illegal steps are about, of one rule or of any."""
    steps = audit(stream, discipline(stream))
    return {step.block for step in steps if rule in ("", step.rule)}


def _broken(stream: Stream) -> Counter[tuple[str, str, Tier]]:
    """How often each rule of causality is broken."""
    steps = audit(stream, discipline(stream))
    return Counter((step.rule, step.family, step.tier) for step in steps)


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
        search.best = search.tried.best or search.best
    finding = search.findings(search.best)[0]
    return Reduced(search.best, finding, search.meter.runs, minimal)

"""A consumer on trial: the stream is delivered to it, and after every message its answers are compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from tierfuzz.codec import Wire, encode_batch
from tierfuzz.errors import EnvironmentFailure
from tierfuzz.events import AllBlocksCleared, Batch, BlockRemoved, BlockStored, Tier
from tierfuzz.model.rules import rules_for
from tierfuzz.orders.pages import Pages, Probe
from tierfuzz.orders.readings import ASKED, READINGS, Expected
from tierfuzz.orders.stream import Restarted, Sent, Source, Stream
from tierfuzz.orders.tried import Live, Make, Seen

SMALL = 40  # blocks; below it every prompt is asked after every message
MOST_ROUNDS = 4  # of replays that a consumer may ask for after one message

DEAF = "it has not heard a message that was published behind this one"

Answer = dict[Tier, int]


@dataclass(frozen=True)
class Finding:
    """A wrong answer, or an exception (`kind` "crash"), after the message with index `entry`.

    `kind`: "forgets" less than one tier alone holds, "phantom" more than all together do, "wrong-tier", or
    "deaf": it does not hear the source any more.
    """

    kind: str
    entry: int
    source: Source
    probe: Probe
    answered: Answer
    right: Mapping[str, Answer]
    detail: str = ""


@dataclass
class Trial:
    """What came of a stream. `follows`: readings that explain every answer ("counts", "sets")."""

    comparisons: int = 0
    findings: list[Finding] = field(default_factory=list)
    follows: set[str] = field(default_factory=lambda: set(READINGS))


@dataclass(frozen=True)
class Look:
    """One answer beside the right ones, by reading."""

    answered: Answer
    right: Mapping[str, Answer]


class _Driver:
    """Feeds one consumer, answers its wishes for replays, and compares."""

    def __init__(self, stream: Stream, make: Make, reading: str) -> None:
        self.stream = stream
        self.pages = Pages(stream)
        self.wire: Wire = "map" if rules_for(stream.profile).wire == "map" else "array"
        names = list(READINGS) if reading == "either" else [reading]
        self.expected = [Expected(name) for name in names]
        self.trial = Trial(follows=set(names))
        self.sources = sorted({entry.source for entry in stream.entries if isinstance(entry, Sent)})
        self._sent: defaultdict[Source, list[bytes]] = defaultdict(list)
        self._messages = 0
        self.consumer = make()
        for worker in sorted({worker for worker, _ in self.sources}):
            ranks = 1 + max(rank for other, rank in self.sources if other == worker)
            self.consumer.register(worker, stream.page_size, ranks)
            self._start(worker)

    def _start(self, worker: int) -> None:
        """The first message of a process says that it is empty (engine-semantics 3.2)."""
        for source in self.sources:
            if source[0] == worker:
                self._sent.pop(source, None)
                self._send(source, Batch(0, self._stamp(), source[1], (AllBlocksCleared(),)))

    def _stamp(self) -> float:
        """Seconds, one later for each message: two processes never send the same one."""
        self._messages += 1
        return float(self._messages)

    def feed(self, index: int) -> None:
        """Deliver one entry."""
        entry = self.stream.entries[index]
        if isinstance(entry, Restarted):
            for expected in self.expected:
                expected.restart(entry.worker)
            self._start(entry.worker)
            return
        seq = len(self._sent[entry.source])
        self._send(entry.source, Batch(seq, self._stamp(), entry.rank, entry.events))

    def _send(self, source: Source, batch: Batch) -> None:
        for expected in self.expected:
            expected.book(source[0], batch)
        self._messages += 1  # no two messages of a fleet are of the same moment
        payload = encode_batch(msgspec.structs.replace(batch, ts=float(self._messages)), self.wire)
        self._sent[source].append(payload)
        self.consumer.deliver(*source, batch.seq, payload)
        for _ in range(MOST_ROUNDS):
            if not (wishes := self.consumer.wanted()):
                break
            for worker, rank, first in wishes:
                for seq, old in enumerate(self._sent[worker, rank][first:], first):
                    self.consumer.deliver(worker, rank, seq, old)

    def probes(self, index: int) -> Iterator[Probe]:
        """What to ask after an entry: everything where that is little, else what the entry touched."""
        blocks = self.pages.blocks
        entry = self.stream.entries[index]
        if len(blocks) > SMALL and isinstance(entry, Sent):
            touched = [
                block
                for event in entry.events
                if isinstance(event, BlockStored | BlockRemoved)
                for block in event.hashes
            ]
            blocks = touched or blocks
        yield from self.pages.around(reversed(blocks))

    def compare(self, index: int) -> Iterator[Finding]:
        """Ask and compare after an entry."""
        for probe in self.probes(index):
            seen = self.consumer.overlap(probe.tokens, probe.salt)
            for source in self.sources:
                if (
                    finding := self._judge(index, probe, source, self._beside(probe, source, seen))
                ) is not None:
                    yield finding
        for source in self.consumer.deaf() if isinstance(self.consumer, Live) else ():
            yield Finding("deaf", index, source, Probe((), ()), {}, {}, DEAF)

    def close(self) -> None:
        """No socket stays open."""
        if isinstance(self.consumer, Live):
            self.consumer.close()

    def look(self, probe: Probe, source: Source) -> Look:
        """One answer beside the right ones."""
        return self._beside(probe, source, self.consumer.overlap(probe.tokens, probe.salt))

    def _beside(self, probe: Probe, source: Source, seen: Seen) -> Look:
        given = seen.get(source, {})
        right = {expected.reading: expected.overlap(source, probe.blocks) for expected in self.expected}
        return Look({tier: given.get(tier, 0) for tier in ASKED}, right)

    def _judge(self, index: int, probe: Probe, source: Source, look: Look) -> Finding | None:
        self.trial.comparisons += 1
        answered, right = look.answered, look.right
        agrees = {reading for reading, answer in right.items() if answer == answered}
        self.trial.follows &= agrees
        if agrees:
            return None
        most = max(answered.values())
        kind = "wrong-tier"
        if most < min(max(answer.values()) for answer in right.values()):
            kind = "forgets"
        elif most > max(expected.held(source, probe.blocks) for expected in self.expected):
            kind = "phantom"
        return Finding(kind, index, source, probe, answered, right)


def check(stream: Stream, make: Make, reading: str = "either", kind: str = "") -> Trial:
    """Deliver a stream to a fresh consumer and compare until it is wrong: at all, or in this `kind`.

    `reading`: "counts", "sets", or "either" of them being right, answer by answer. Of the
    message that showed it, the first wrong answer is kept; a consumer that raised is not asked again.
    """
    driver = _Driver(stream, make, reading)
    try:
        return _tried(driver, kind)
    finally:
        driver.close()


def _tried(driver: _Driver, kind: str) -> Trial:
    stream, trial = driver.stream, driver.trial
    for index in range(len(stream.entries)):
        try:
            driver.feed(index)
            found = list(driver.compare(index))
        except EnvironmentFailure:
            raise
        except Exception as error:  # whatever a consumer raises is its answer
            found = [_crash(index, stream, error)]
        trial.findings = [finding for finding in found if kind in ("", finding.kind)][:1]
        if trial.findings or any(finding.kind == "crash" for finding in found):
            break
    return trial


def follow(stream: Stream, make: Make, finding: Finding, reading: str = "either") -> Iterator[Look]:
    """The stream once more, and after every message the answer that the finding is about."""
    driver = _Driver(stream, make, reading)
    try:
        for index in range(finding.entry + 1):
            driver.feed(index)
            yield driver.look(finding.probe, finding.source)
    except EnvironmentFailure:
        raise
    except Exception:  # the finding itself says what was raised
        return
    finally:
        driver.close()


def _crash(index: int, stream: Stream, error: Exception) -> Finding:
    entry = stream.entries[index]
    source = entry.source if isinstance(entry, Sent) else (entry.worker, 0)
    return Finding("crash", index, source, Probe((), ()), {}, {}, f"{type(error).__name__}: {error}")

"""Puts batches into the order of their numbers: pure, judges what the sockets brought (3.2, 3.5).

A live message is released at once when its number is the next one, dropped when it repeats a known one to
the byte, and else set aside as a stray; after a stray with an old number everything is, since it may come
from a worker that started again. Strays are judged by a replay, which tells a gap (fill it), a new worker
(count from 0) and a number that was never given apart. Without a replay the live order has to be believed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

REMEMBERED = 4096  # batches whose content is remembered, to tell repeats and restarts


class Arrival(NamedTuple):
    """A message with a sequence number; `received` in monotonic seconds."""

    seq: int
    payload: bytes
    received: float
    replayed: bool = False


class _Stray(NamedTuple):
    arrival: Arrival
    expected: int  # the next number at that time


class Sequencer:
    """Order of one worker's batches. `find(slug, detail)` is told what is wrong with the transport."""

    def __init__(self, find: Callable[[str, str], None]) -> None:
        self.next = 0
        self.counts: Counter[str] = Counter()
        self._find = find
        self._ready: list[Arrival] = []
        self._strays: dict[int, _Stray] = {}
        self._doubtful = False  # a stray has an old number
        self._known: dict[int, int] = {}  # number -> hash of the payload

    @property
    def anchor(self) -> int:
        """Where a replay has to start so that the worker shows whether it is still the same process."""
        return max(0, self.next - 1)

    @property
    def unclear(self) -> bool:
        """There are strays: only a replay can say where they belong."""
        return bool(self._strays)

    def take(self) -> list[Arrival]:
        """What was released since the last call, in order."""
        ready, self._ready = self._ready, []
        return ready

    def forget(self) -> None:
        """Expect a new process that counts from 0. What was released stays to be taken."""
        self.next = 0
        self._known.clear()
        self._take_strays()

    # live ------------------------------------------------------------------------------------------
    def offer(self, arrival: Arrival) -> None:
        """A live message."""
        if arrival.seq == self.next and not self._doubtful:
            self._release(arrival)
            while (stray := self._strays.pop(self.next, None)) is not None:
                self._release(stray.arrival)
        elif self._repeats(arrival):
            self.counts["duplicates"] += 1
        else:
            self._set_aside(arrival)

    def _set_aside(self, arrival: Arrival) -> None:
        self._doubtful = self._doubtful or arrival.seq < self.next
        other = self._strays.setdefault(arrival.seq, _Stray(arrival, self.next)).arrival
        if other is arrival:
            return
        if other.payload == arrival.payload:
            self.counts["duplicates"] += 1
        else:
            self._conflict(arrival, "another batch came under the same number")

    def _repeats(self, arrival: Arrival) -> bool:
        return self._known.get(arrival.seq) == hash(arrival.payload)

    def _release(self, arrival: Arrival) -> None:
        self._ready.append(arrival)
        self._known[arrival.seq] = hash(arrival.payload)
        self.next = arrival.seq + 1
        if len(self._known) > 2 * REMEMBERED:
            self._known = {seq: value for seq, value in self._known.items() if seq >= self.next - REMEMBERED}

    def _skip_to(self, seq: int) -> None:
        if seq > self.next:
            missing = f"batch {self.next}" if seq == self.next + 1 else f"batches {self.next} to {seq - 1}"
            self._find("sequence-gap", f"{missing} never came and cannot be replayed")
            self.next = seq

    def _take_strays(self) -> list[_Stray]:
        strays, self._strays, self._doubtful = list(self._strays.values()), {}, False
        return strays

    def _conflict(self, arrival: Arrival, why: str) -> None:
        size = len(arrival.payload)
        self._find("sequence-gap", f"a batch of {size} bytes came under number {arrival.seq}: {why}")

    # with a replay ---------------------------------------------------------------------------------
    def recognises(self, replay: Iterable[Arrival]) -> bool:
        """The replay from `anchor` holds the newest batch that is in hand: the process is the same."""
        return self.next == 0 or any(one.seq == self.anchor and self._repeats(one) for one in replay)

    def contradicted_by(self, whole: Iterable[Arrival]) -> bool:
        """The replay from 0 holds numbers that are in hand, all with other content: another process."""
        old = [arrival for arrival in whole if arrival.seq < self.next]
        return bool(old) and not any(self._repeats(arrival) for arrival in old)

    def altered(self, replay: Sequence[Arrival]) -> list[str]:
        """What a complete replay holds in another form than it came, or lacks between what it does hold."""
        held = {arrival.seq: arrival for arrival in replay}
        gone = [seq for seq in range(min(held, default=self.next), self.next) if seq in self._known]
        texts = [f"batch {seq} came, and a replay skips it" for seq in gone if seq not in held]
        others = [seq for seq in gone if seq in held and not self._repeats(held[seq])]
        return texts + [f"batch {seq} has another content in a replay" for seq in others]

    def restart(self, how: str) -> None:
        """The worker counts from 0 again; strays stay to be judged."""
        self._find("subscriber-restart", f"the worker started again after batch {self.anchor}: {how}")
        self.next = 0
        self._known.clear()

    def merge(self, replay: Iterable[Arrival]) -> None:
        """Release what a complete replay and the strays hold together; say what is still missing."""
        known = {arrival.seq: arrival for arrival in replay if arrival.seq >= self.next}
        newest = max(known, default=self.next - 1)
        for stray in self._take_strays():
            self._place(stray.arrival, known, newest)
        for seq in sorted(known):
            self._skip_to(seq)
            self.counts["replayed"] += known[seq].replayed
            self._release(known[seq])

    def _place(self, arrival: Arrival, known: dict[int, Arrival], newest: int) -> None:
        seq, replayed = arrival.seq, known.get(arrival.seq)
        if self._repeats(arrival):
            self.counts["duplicates"] += 1
        elif replayed is not None and replayed.payload != arrival.payload:
            self._conflict(arrival, "the replay has other content")
        elif self.next <= seq <= newest:
            known[seq] = arrival  # rather than its replay: it has the true time of arrival
        else:
            self._conflict(arrival, f"expected {self.next}, and the newest that the worker knows is {newest}")

    # without a replay ------------------------------------------------------------------------------
    def believe(self) -> None:
        """Place the strays by the live order alone."""
        here, strays = self.next, self._take_strays()
        for stray in strays:
            if stray.expected != here:
                self._conflict(stray.arrival, f"the stream went on at {stray.expected}")
        rest = [stray.arrival for stray in strays if stray.expected == here]
        old = next((at for at, arrival in enumerate(rest) if arrival.seq < here), len(rest))
        for arrival in (*sorted(rest[:old], key=lambda one: one.seq), *rest[old:]):
            self._believe(arrival)

    def _believe(self, arrival: Arrival) -> None:
        if self._repeats(arrival):
            self.counts["duplicates"] += 1
            return
        if arrival.seq < self.next:
            self.restart(f"number {arrival.seq} came where {self.next} was expected")
        self._skip_to(arrival.seq)
        self._release(arrival)


def arrivals(messages: Sequence[tuple[int, bytes]], received: float) -> list[Arrival]:
    """Replayed messages as arrivals."""
    return [Arrival(seq, payload, received, True) for seq, payload in messages]

"""The stream of one worker and rank as a subscriber sees it: in order, gaps asked for, restarts noticed."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

REMEMBERED = 4096  # messages whose content is remembered, to tell a repeat from another process


class Kind(StrEnum):
    """What is to be done."""

    APPLY = "apply"  # the message is the next one
    RESTARTED = "restarted"  # another process counts from 0: what the old one said is void
    LOST = "lost"  # messages are gone for good: what was said before can be wrong


class Step(NamedTuple):
    """One thing to do; `seq` and `payload` of a message to apply."""

    kind: Kind
    seq: int = 0
    payload: bytes = b""


class Feed:
    """Sequence numbers of one source, which count from 0 in each process (engine-semantics 3.2).

    A number that was seen with other content can only come from another process. Replays are asked for from
    the newest message in hand on, so that a process that is already past that number shows itself too.
    """

    def __init__(self) -> None:
        self.next = 0
        self._joined = False  # something was heard, or a replay from the start was asked for
        self._known: dict[int, int] = {}  # number -> hash of the payload
        self._waiting: dict[int, bytes] = {}
        self._asked = -1  # value of `next` when a replay was asked for

    def offer(self, seq: int, payload: bytes) -> Iterator[Step]:
        """A message has come; what is to be done now, in order."""
        if seq < self.next:
            if self._known.get(seq) == hash(payload):
                return
            self._start_over()
            yield Step(Kind.RESTARTED)
        self._waiting.setdefault(seq, payload)
        yield from self._contiguous()

    def _start_over(self) -> None:
        self.next, self._asked = 0, -1
        self._known.clear()
        self._waiting.clear()  # perhaps of the old process; the replay brings what is of the new one

    def _contiguous(self) -> Iterator[Step]:
        while (payload := self._waiting.pop(self.next, None)) is not None:
            self._known[self.next] = hash(payload)
            yield Step(Kind.APPLY, self.next, payload)
            self.next += 1
            self._joined = True
        if len(self._known) > 2 * REMEMBERED:
            self._known = {seq: value for seq, value in self._known.items() if seq >= self.next - REMEMBERED}

    def wish(self) -> int | None:
        """First number of a replay that is needed now: at the start, and while messages wait for others."""
        if self._joined and not self._waiting:
            return None
        if self._asked == self.next:
            return None
        self._asked = self.next
        return max(0, self.next - 1)

    def give_up(self) -> Iterator[Step]:
        """A replay was asked for and has not helped: go on after the gap."""
        if self._asked != self.next:
            return
        self._joined = True
        if self._waiting:
            self.next = min(self._waiting)
            yield Step(Kind.LOST)
            yield from self._contiguous()

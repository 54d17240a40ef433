"""Fuzzing of event orders: legal histories, and labelled illegal ones, against one consumer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings

from tierfuzz.orders.check import Finding, check
from tierfuzz.orders.readings import READINGS
from tierfuzz.orders.stream import Entry, Stream
from tierfuzz.orders.tried import Make
from tierfuzz.program import WritePolicy
from tierfuzz.strategies.orders import legal_histories, stray_histories

ROUND = 20  # examples; Hypothesis varies what it has drawn, so a fresh start now and then differs more
SEEDS = 1 << 32  # of the rounds of one seed


@dataclass
class OrderRun:
    """What came of the different streams of a policy, and of a family of illegal orders ("": legal ones).

    `follows`: readings that explain all answers; `wrong`: streams by kind of the first wrong answer;
    `first`: the first stream of each kind and engine profile.
    """

    policy: WritePolicy
    family: str = ""
    streams: int = 0
    events: int = 0
    comparisons: int = 0
    follows: set[str] = field(default_factory=lambda: set(READINGS))
    wrong: Counter[str] = field(default_factory=Counter)
    first: dict[tuple[str, str], tuple[Stream, Finding]] = field(default_factory=dict)
    _seen: set[tuple[Entry, ...]] = field(default_factory=set)

    def note(self, stream: Stream, make: Make, reading: str) -> None:
        """Try the consumer on one more stream; a stream that came before counts once."""
        if stream.entries in self._seen:
            return
        self._seen.add(stream.entries)
        trial = check(stream, make, reading)
        self.streams += 1
        self.events += stream.events
        self.comparisons += trial.comparisons
        self.follows &= trial.follows
        for finding in trial.findings[:1]:
            self.wrong[finding.kind] += 1
            self.first.setdefault((finding.kind, stream.profile), (stream, finding))


def fuzz_orders(
    make: Make,
    policy: WritePolicy,
    family: str = "",
    max_examples: int = 200,
    seed_: int = 0,
    reading: str = "either",
) -> OrderRun:
    """Try a consumer on up to `max_examples` different streams; the same seed gives the same streams."""
    found = OrderRun(policy, family)
    histories = stray_histories(family, policy) if family else legal_histories(policy)

    for number in range(0, max_examples, ROUND):

        @seed(seed_ * SEEDS + number)
        @settings(
            max_examples=min(ROUND, max_examples - number),
            phases=(Phase.generate,),  # a stream is shrunk by its own passes (tierfuzz.orders.reduce)
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(histories)
        def each(stream: Stream) -> None:
            found.note(stream, make, reading)

        each()
    return found

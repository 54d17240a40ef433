"""One worker, asked for answers whose log probabilities are compared."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from random import Random

from tierfuzz.errors import EnvironmentFailure
from tierfuzz.fleet import Fleet, Worker
from tierfuzz.observation import TierSplit
from tierfuzz.oracles.contents import Comparison, Served
from tierfuzz.oracles.likelihoods import difference
from tierfuzz.prompts import VOCABULARY, stream_tokens
from tierfuzz.worker.http import Answer, Call

TOP = 20
FLUSH_BOUND_S = 30.0
Tokens = tuple[int, ...]


@dataclass
class Asker:
    """A worker, what is random about a campaign, and the number of requests so far."""

    fleet: Fleet
    worker: Worker
    random: Random
    requests: int = 0
    _names: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def page(self) -> int:
        """Tokens a page."""
        return self.fleet.config.page_size

    def fresh(self, length: int) -> Tokens:
        """Tokens that nobody has sent before."""
        name = f"content-{self.fleet.config.seed}-{next(self._names)}"
        return tuple(stream_tokens(name, 0, length).tolist())

    def ask(self, tokens: Tokens, outputs: int = 1, namespace: str | None = None) -> Answer:
        """Send one request; a failure ends the campaign."""
        self.requests += 1
        call = Call(f"q{next(self._names)}", tokens, outputs, namespace, top_logprobs=TOP if outputs else 0)
        return self.worker.client.generate(call).usable()

    def flush(self) -> None:
        """Empty device and host."""
        self.rest()
        if not self.worker.client.flush(FLUSH_BOUND_S):
            raise EnvironmentFailure(f"{self.worker.launch.base_url}: not flushed within {FLUSH_BOUND_S:g} s")

    def rest(self) -> None:
        """No request, copy or event is in flight."""
        if not (rest := self.fleet.settle(self.worker)).at_rest:
            raise EnvironmentFailure(f"{self.worker.launch.base_url} did not come to rest: {rest.reason}")
        self.worker.subscriber.drain()

    def fill(self, share: float = 1.0) -> int:
        """Turn the device pool over with prompts that end in no output; requests sent."""
        length = max(self.page, self.fleet.config.device_tokens // 8 // self.page * self.page)
        number = -(-int(self.fleet.config.device_tokens * share) // length) + 1
        for _ in range(number):
            self.ask(self.fresh(length), 0)
        return number


def other(token: int) -> int:
    """Another token."""
    return token % VOCABULARY + 1


def apart(left: Answer, right: Answer) -> float:
    """How far two answers are apart."""
    return difference(dict(left.first_logprobs), dict(right.first_logprobs))


def served_of(answer: Answer, whole: int) -> Served | None:
    """The one tier that served the `whole` prefix; None where it was several, or part of it."""
    split = answer.split or TierSplit()
    if (answer.cached_tokens or 0) == 0:
        return "fresh"
    if split.device == whole:
        return "device"
    if split.host == whole:
        return "host"
    return "storage" if split.storage == whole else None


def compared(
    kind: str, served: Served, answer: Answer, cold: Answer, prompt: int, outputs: int, shape: str = ""
) -> Comparison:
    """One answer against the cold one."""
    same = answer.output_ids == cold.output_ids
    return Comparison(kind, served, apart(answer, cold), same, prompt, outputs, shape)

"""A modelled worker and the judge that watches it, without processes."""

from __future__ import annotations

from dataclasses import dataclass

from modelling import levels, observation_of

from tierfuzz.events import Batch
from tierfuzz.model.config import EngineConfig
from tierfuzz.model.engine import Engine
from tierfuzz.model.request import Reply, Request
from tierfuzz.model.rules import rules_for
from tierfuzz.oracles.judge import Judge
from tierfuzz.program import FleetConfig, Generate, WritePolicy
from tierfuzz.prompts import tokens_of
from tierfuzz.traits import Traits

MOST_TICKS = 4000


@dataclass(frozen=True)
class Shape:
    """Pools of one worker, how much of the device a prompt takes at most, and `output_reserve`."""

    page_size: int
    device_tokens: int
    host_ratio: float
    chunked_prefill: int
    prompt_share: float
    output_reserve: int = 4096

    @property
    def longest(self) -> int:
        """Tokens of the longest prompt."""
        return int(self.device_tokens * self.prompt_share)


SHAPES = [
    Shape(16, 512, 4.0, 8192, 0.25),  # room for claims of what must be held
    Shape(16, 512, 8.0, 64, 0.25),
    Shape(16, 512, 2.0, 8192, 0.5),
    Shape(16, 512, 0.5, 8192, 0.5),
    Shape(4, 256, 2.0, 32, 0.5),
    Shape(1, 128, 2.0, 8192, 0.5),
]


class Bench:
    """One modelled worker and the judge that watches it."""

    def __init__(self, profile: str, policy: WritePolicy, shape: Shape) -> None:
        rules = rules_for(profile)
        fleet = FleetConfig(
            policy=policy,
            workers=1,
            page_size=shape.page_size,
            device_tokens=shape.device_tokens,
            host_ratio=shape.host_ratio,
            chunked_prefill=shape.chunked_prefill,
        )
        config = EngineConfig(
            shape.page_size,
            shape.device_tokens,
            fleet.host_tokens,
            policy,
            shape.chunked_prefill,
            output_reserve=shape.output_reserve,
        )
        self.engine = Engine(config, rules)
        traits = Traits(not rules.namespace_aliasing, rules.removal_first, rules.silent_revival)
        self.judge = Judge(fleet, 0, traits)
        self.batches = 0

    def tick(self) -> list[Reply]:
        """One pass of the scheduler; its events go to the judge at once, replies come back."""
        result = self.engine.tick()
        for events in result.batches:
            self.batches += 1
            self.judge.batch(Batch(self.batches, 0.0, 0, tuple(events)))
        return result.replies

    def settle(self) -> list[Reply]:
        """Tick until idle; all replies."""
        replies: list[Reply] = []
        for _ in range(MOST_TICKS):
            replies += self.tick()
            if self.engine.idle:
                return replies
        raise AssertionError("the model did not come to rest")

    def flush(self, operation: str) -> None:
        """Empty the worker."""
        assert self.engine.flush()
        self.judge.flushed(operation)
        self.settle()
        self.judge.rested()

    def ask(self, generate: Generate) -> None:
        """One request, from rest to rest."""
        tokens = tokens_of(generate.prompt)
        self.judge.expect(generate, tokens, at_rest=True)
        self.submit(generate, tokens)
        (reply,) = self.settle()
        self.judge.replied(generate, observation_of(generate, tokens, reply))
        self.rested()

    def submit(self, generate: Generate, tokens: tuple[int, ...]) -> None:
        """Send a request to the engine; the judge was told before."""
        namespace = generate.namespace or ""
        self.engine.submit(Request(generate.id, tokens, generate.outputs, namespace, generate.logprob_start))

    def rested(self) -> None:
        """The engine is idle: what can be asked at rest."""
        self.judge.rested()
        self.judge.gauges(levels(self.engine))


def allowed(profile: str, policy: WritePolicy, shape: Shape) -> set[str]:
    """Known defects: B6c, B7 anywhere, E5 under write_back, B8 under selective, B5 on small pages, T10 on
    small hosts."""
    if profile == "default":
        return set()
    known = {"duplicate-store", "unmatched-removal"}
    if policy == "write_back":
        known.add("orphan-parent")
    if policy == "write_through_selective" and profile == "sglang-0.5.17":
        known.add("early-backup")
    if shape.page_size < 10:
        known.add("split-sum")
    if shape.host_ratio < 1 and policy == "write_through":
        known.add("no-backup")
    return known

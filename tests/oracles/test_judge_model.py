"""The judge over the step model: silent on a healthy worker, and only known defects on real versions."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from recorded import violations

from tierfuzz.events import Batch
from tierfuzz.model.config import EngineConfig
from tierfuzz.model.engine import Engine
from tierfuzz.model.request import Reply, Request
from tierfuzz.model.rules import rules_for
from tierfuzz.observation import Observation
from tierfuzz.oracles.judge import Judge
from tierfuzz.program import WRITE_POLICIES, FleetConfig, Generate, WritePolicy
from tierfuzz.prompts import Piece, tokens_of
from tierfuzz.traits import Traits

MOST_TICKS = 2000


@dataclass(frozen=True)
class Shape:
    """Pools of one worker, and how much of the device a prompt takes at most."""

    page_size: int
    device_tokens: int
    host_ratio: float
    chunked_prefill: int
    prompt_share: float

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


@dataclass(frozen=True)
class Step:
    """A request (`flush`: after a flush), or one of before again when `again` names a place in the past."""

    first: int
    second: int
    length: float
    cut: float
    exact: bool
    outputs: int
    namespace: str
    logprob: float | None
    again: int | None
    flush: bool


STEPS = st.builds(
    Step,
    first=st.integers(0, 5),
    second=st.integers(0, 3),
    length=st.floats(0.02, 1.0),
    cut=st.floats(0.0, 1.0),
    exact=st.booleans(),
    outputs=st.sampled_from([0, 1, 2, 5, 20]),
    namespace=st.sampled_from(["", "", "", "a"]),
    logprob=st.sampled_from([None, None, None, None, 0.0, 0.5]),
    again=st.sampled_from([None, None, 1, 2, 5, 9]),
    flush=st.sampled_from([False] * 30 + [True]),
)


def pieces_of(step: Step, shape: Shape) -> tuple[Piece, ...]:
    """A prompt over few streams, so that prefixes are shared, forked and repeated."""
    length = max(1, int(step.length * shape.longest))
    if step.exact:
        length = max(1, length // shape.page_size) * shape.page_size
    cut = int(step.cut * length)
    pieces = (Piece(f"s{step.first}", 0, cut), Piece(f"t{step.second}", cut, length))
    return tuple(piece for piece in pieces if len(piece))


def generate_of(number: int, step: Step, shape: Shape) -> Generate:
    """The request of a step."""
    pieces = pieces_of(step, shape)
    length = sum(len(piece) for piece in pieces)
    start = None if step.logprob is None else int(step.logprob * length)
    return Generate(str(number), 0, pieces, step.outputs, "repeat", step.namespace or None, start)


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
            shape.page_size, shape.device_tokens, fleet.host_tokens, policy, shape.chunked_prefill
        )
        self.engine = Engine(config, rules)
        traits = Traits(not rules.namespace_aliasing, rules.removal_first, rules.silent_revival)
        self.judge = Judge(fleet, 0, traits)
        self.batches = 0

    def settle(self) -> list[Reply]:
        """Tick until idle; events go to the judge at once, replies come back."""
        replies: list[Reply] = []
        for _ in range(MOST_TICKS):
            result = self.engine.tick()
            replies += result.replies
            for events in result.batches:
                self.batches += 1
                self.judge.batch(Batch(self.batches, 0.0, 0, tuple(events)))
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
        request = Request(
            generate.id, tokens, generate.outputs, generate.namespace or "", generate.logprob_start
        )
        self.engine.submit(request)
        (reply,) = self.settle()
        self.judge.replied(generate, observation_of(generate, tokens, reply))
        self.judge.rested()
        self.judge.gauges(self.metrics())

    def metrics(self) -> dict[str, float]:
        """Levels as a worker would report them."""
        gauges = self.engine.gauges()
        return {
            "sglang:num_running_reqs": gauges.running,
            "sglang:num_queue_reqs": gauges.waiting,
            "sglang:kv_available_tokens": gauges.device_free,
            "sglang:kv_evictable_tokens": gauges.device_evictable,
            "sglang:hicache_host_used_tokens": gauges.host_used,
        }


def observation_of(generate: Generate, tokens: tuple[int, ...], reply: Reply) -> Observation:
    """What a client sees of a reply."""
    return Observation(
        operation=generate.id,
        worker=0,
        namespace=generate.namespace,
        prompt=tokens,
        requested_outputs=generate.outputs,
        status="ok",
        started=0.0,
        ended=0.0,
        output_ids=reply.output_ids,
        prompt_tokens=reply.prompt_tokens,
        cached_tokens=reply.cached_tokens,
        split=reply.split,
        logprob_start=generate.logprob_start,
    )


def run(profile: str, policy: WritePolicy, shape: Shape, steps: list[Step]) -> Judge:
    """All steps, one at a time; the judge that has seen them."""
    bench = Bench(profile, policy, shape)
    asked: list[Generate] = []
    for number, step in enumerate(steps):
        if step.flush:
            bench.flush(f"flush{number}")
        fresh = generate_of(number, step, shape)
        if step.again is not None and step.again <= len(asked):
            old = asked[-step.again]
            fresh = Generate(
                str(number), 0, old.prompt, step.outputs, "repeat", old.namespace, old.logprob_start
            )
        asked.append(fresh)
        bench.ask(fresh)
    return bench.judge


def allowed(profile: str, policy: WritePolicy, shape: Shape) -> set[str]:
    """Known defects of a profile: B6c and B7 anywhere, E5 under write_back, B5 on small pages."""
    if profile == "default":
        return set()
    known = {"duplicate-store", "unmatched-removal"}
    if policy == "write_back":
        known.add("orphan-parent")
    if shape.page_size < 10:
        known.add("split-sum")
    return known


PROFILES = ["default", "sglang-0.5.17", "sglang-0.5.23"]


@pytest.mark.parametrize("policy", WRITE_POLICIES)
@pytest.mark.parametrize("profile", PROFILES)
@settings(
    max_examples=20,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
@given(shape=st.sampled_from(SHAPES), steps=st.lists(STEPS, min_size=20, max_size=50))
def test_random_requests_show_only_known_defects(
    profile: str, policy: WritePolicy, shape: Shape, steps: list[Step]
) -> None:
    judge = run(profile, policy, shape, steps)
    assert set(violations(judge)) <= allowed(profile, policy, shape), judge.take_verdicts()
    replies = judge.docket.held["phantom-hit"]
    assert replies == len(steps)


def simple(first: int, again: int | None = None) -> Step:
    """A prompt of a stream of its own, as long as may be; or one of before."""
    return Step(first, 0, 1.0, 1.0, True, 1, "", None, again, False)


@pytest.mark.parametrize("policy", WRITE_POLICIES)
@pytest.mark.parametrize("profile", PROFILES)
def test_what_left_the_device_is_claimed_from_host_and_served(profile: str, policy: WritePolicy) -> None:
    fillers = [simple(number) for number in range(1, 13)]
    steps = [simple(0), simple(0), *fillers, simple(0, again=13)]
    judge = run(profile, policy, SHAPES[1], steps)
    assert set(violations(judge)) <= allowed(profile, policy, SHAPES[1])
    assert judge.docket.held["host-miss"] == judge.reach["probe-host-only"] == 1

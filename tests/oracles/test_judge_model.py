"""The judge over the step model: silent on a healthy worker, and only known defects on real versions."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from bench import SHAPES, Bench, Shape, allowed
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from recorded import violations

from tierfuzz.oracles.judge import Judge
from tierfuzz.program import WRITE_POLICIES, Generate, WritePolicy
from tierfuzz.prompts import Piece


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

"""Contents by log probabilities: noise passes, another content does not."""

from __future__ import annotations

import math

import pytest

from tierfuzz.observation import Observation, TierSplit
from tierfuzz.oracles.docket import Docket
from tierfuzz.oracles.likelihoods import Likelihoods, difference, tolerance_of

PROMPT = (1, 2, 3)
HOST = TierSplit(host=16)


def seen(*values: float, split: TierSplit | None = None) -> Observation:
    """An answer whose first output has these log probabilities, by token."""
    return Observation(
        "o", 0, None, PROMPT, 1, "ok", 0.0, 1.0, (0,), split=split, first_logprobs=tuple(enumerate(values))
    )


@pytest.mark.parametrize(("layers", "tolerance"), [(0, 0.28), (4, 0.28), (20, 0.54), (36, 0.8), (96, 0.8)])
def test_deeper_models_are_noisier(layers: int, tolerance: float) -> None:
    assert tolerance_of(layers) == pytest.approx(tolerance)


def test_only_tokens_that_both_know_are_compared() -> None:
    assert difference({1: -1.0, 2: -2.0}, {1: -1.25, 3: -9.0}) == 0.25
    assert math.isinf(difference({1: -1.0}, {2: -1.0}))


def test_noise_holds_and_another_content_is_a_violation() -> None:
    docket = Docket(0)
    contents = Likelihoods(docket, 0.28)
    contents.check(PROMPT, "first", seen(-1.0, -2.0))
    contents.check(PROMPT, "again", seen(-1.2, -1.9, split=HOST))
    assert (docket.held["content"], docket.take()) == (1, [])
    contents.check(PROMPT, "wrong", seen(-1.0, -2.4, split=HOST))
    (verdict,) = docket.take()
    assert (verdict.oracle, verdict.operation, verdict.facts["difference"]) == ("content", "wrong", 0.4)
    assert "16 from host" in verdict.message


def test_prompts_are_compared_with_themselves_and_not_after_a_case() -> None:
    docket = Docket(0)
    contents = Likelihoods(docket, 0.28)
    contents.check(PROMPT, "first", seen(-1.0))
    contents.check((*PROMPT, 4), "other", seen(-5.0))
    contents.clear()
    contents.check(PROMPT, "next case", seen(-9.0))
    assert docket.take() == []

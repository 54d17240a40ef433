"""Before contents are compared they have to be told apart."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tierfuzz.errors import Vacuous
from tierfuzz.fleet import Fleet
from tierfuzz.program import FleetConfig
from tierfuzz.sensitivity import prove_sensitivity
from tierfuzz.worker.calls import Answer
from tierfuzz.worker.http import Call


class Fake:
    """A worker whose likelihoods move by `step` for each other prompt; `asked` counts requests."""

    def __init__(self, step: float) -> None:
        self.step, self.asked = step, 0

    def generate(self, call: Call) -> Answer:
        """An answer without a cache."""
        self.asked += 1
        assert call.top_logprobs > 0
        return Answer("ok", 0.0, 0.0, (1,), first_logprobs=((1, self.asked * self.step),))


def fleet_of(client: Fake, **config: Any) -> Fleet:
    """A fleet of one such worker."""
    worker = SimpleNamespace(client=client, launch=SimpleNamespace(base_url="http://w"))
    return cast(Fleet, SimpleNamespace(config=FleetConfig(**config), workers=[worker]))


def test_contents_that_differ_are_accepted() -> None:
    client = Fake(1.0)
    prove_sensitivity(fleet_of(client, weights="random", layers=36))
    assert client.asked == 6


def test_contents_that_are_all_alike_prove_nothing() -> None:
    with pytest.raises(Vacuous, match="contents of http://w prove nothing"):
        prove_sensitivity(fleet_of(Fake(0.1), weights="random"))


def test_dummy_weights_are_not_asked() -> None:
    client = Fake(0.0)
    prove_sensitivity(fleet_of(client))
    assert client.asked == 0

"""Cases of the event publisher on the step model, over the wire's own codec: noticed, and nothing else is."""

from __future__ import annotations

import pytest
from modelled import Modelled

from tierfuzz.catalogue.case import Case
from tierfuzz.catalogue.publisher import CASES
from tierfuzz.codec import decode_batch, encode_batch
from tierfuzz.events import Batch
from tierfuzz.faults.registry import make_fault
from tierfuzz.model.engine import Engine
from tierfuzz.model.request import Reply
from tierfuzz.model.rules import rules_for
from tierfuzz.prompts import Piece

SEEDS = range(3)
STEPS = 60
# Their faults are those of sockets and of the server info: tests/sim and tests/worker.
ON_SOCKETS = ("T25", "T26", "T27")
MODELLED = [case for case in CASES if case.id not in ON_SOCKETS]
every_case = pytest.mark.parametrize("case", MODELLED, ids=[case.id for case in MODELLED])


class Published(Modelled):
    """The judge is told what a subscriber reads."""

    def __init__(self, case: Case, plant: str, seed: int) -> None:
        super().__init__(case, "", seed)
        self.batches = 0
        switched = [text.removesuffix("=true") for text in case.fleet.extra_args if text != "--sim-rule"]
        rules = rules_for(case.fleet.profile).but(**dict.fromkeys(switched, True))
        self.engine = Engine(self.engine.config, rules, [make_fault(plant)] if plant else [])
        if case.fleet.ack_delay_ms:
            self.engine.copies.gate = self._lands

    def step(self) -> None:
        """As elsewhere, and at times a new prompt beside a branch of it, or one of whole pages twice."""
        self.rng.choice([super().step, super().step, self.beside, self.whole])()

    def beside(self) -> None:
        """The second cuts the node of the first while that may be on its way to host."""
        first = self.fresh()
        self.together([first, self.fork(first.prompt)])

    def whole(self) -> None:
        """The last page of a prompt is computed again each time: its last token always is."""
        prompt = (Piece(f"w{self.told}", 0, 4 * self.fleet.page_size),)
        self.together([self._generate(prompt)])
        self.together([self._generate(prompt)])

    def _tick(self) -> list[Reply]:
        result = self.engine.tick()
        for events in result.batches:
            payload = encode_batch(Batch(self.batches, 0.0, 0, tuple(events)))
            self.judge.batch(decode_batch(self.batches, payload))
            self.batches += 1
        return result.replies


def run(case: Case, plant: str, seed: int) -> Published:
    """Traffic until one of the case's oracles speaks, or the steps are done."""
    published = Published(case, plant, seed)
    for _ in range(STEPS):
        published.step()
        if published.dead or published.violations() & set(case.oracles):
            break
    return published


def test_they_are_those_of_the_reference() -> None:
    known = {f"T{number}" for number in range(18, 33)}
    assert {case.id for case in CASES} | {"T26"} == known
    assert {case.component for case in CASES} == {"event publisher"}


@every_case
def test_the_plant_is_noticed_by_an_oracle_that_the_case_names(case: Case) -> None:
    for seed in SEEDS:
        found = run(case, case.plant, seed).violations()
        assert found & set(case.oracles), (seed, found)


@every_case
def test_the_same_traffic_without_the_plant_is_silent(case: Case) -> None:
    for seed in SEEDS:
        healthy = run(case, "", seed)
        assert healthy.violations() == set(), healthy.judge.take_verdicts()
        held = healthy.judge.docket.held
        assert held["phantom-hit"] >= STEPS
        assert held["storage-claim"] > 0 or "storage-claim" not in case.oracles

"""Cases of the engine's tree on the step model: what is planted is noticed, and nothing else is."""

from __future__ import annotations

import pytest
from modelled import run

from tierfuzz.catalogue.case import Case
from tierfuzz.catalogue.engine_tree import CASES

SEEDS = range(3)
STEPS = 60
every_case = pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])


def test_there_are_seventeen() -> None:
    assert [case.id for case in CASES] == [f"T{number:02}" for number in range(1, 18)]
    assert {case.component for case in CASES} == {"engine tree"}


@every_case
def test_the_plant_is_noticed_by_an_oracle_that_the_case_names(case: Case) -> None:
    for seed in SEEDS:
        found = run(case, case.plant, seed, STEPS).violations()
        assert found & set(case.oracles), (seed, found)


@every_case
def test_the_same_traffic_without_the_plant_is_silent(case: Case) -> None:
    for seed in SEEDS:
        healthy = run(case, "", seed, STEPS)
        assert healthy.violations() == set(), healthy.judge.take_verdicts()
        assert healthy.judge.docket.held["phantom-hit"] >= STEPS

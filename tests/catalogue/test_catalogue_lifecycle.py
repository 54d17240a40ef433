"""Cases of the accounting and of the lifecycle on the step model: planted ones are noticed, others silent."""

from __future__ import annotations

import pytest
from contended import Contended

from tierfuzz.catalogue import accounting, lifecycle
from tierfuzz.catalogue.case import Case

SEEDS = range(3)
STEPS = 60
MOST_STEPS = 300
CASES = [case for case in (*accounting.CASES, *lifecycle.CASES) if case.plant]
every_case = pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])


def test_each_module_keeps_to_its_component() -> None:
    assert {case.component for case in accounting.CASES} == {"accounting"}
    assert {case.component for case in lifecycle.CASES} == {"lifecycle"}


@every_case
def test_the_plant_is_noticed_by_an_oracle_that_the_case_names(case: Case) -> None:
    for seed in SEEDS:
        worker = Contended(case, case.plant, seed)
        for _ in range(MOST_STEPS):
            if worker.dead or worker.violations() & set(case.oracles):
                break
            worker.step()
        assert worker.violations() & set(case.oracles), (seed, worker.violations())


@every_case
def test_the_same_traffic_without_the_plant_is_silent(case: Case) -> None:
    worker = Contended(case, "", 0)
    for _ in range(STEPS):
        worker.step()
    assert worker.violations() == set(), worker.judge.take_verdicts()
    assert worker.judge.docket.held["phantom-hit"] >= STEPS

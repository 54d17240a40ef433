"""The catalogue holds together: ids, sources, what notices, and where each case is reached."""

from __future__ import annotations

import re

import pytest

from tierfuzz.catalogue.all_cases import CASES, case
from tierfuzz.catalogue.case import COMPONENTS, OBSERVABLES, Case
from tierfuzz.errors import UsageError
from tierfuzz.faults.registry import FAULTS
from tierfuzz.oracles.registry import ORACLES

IDS = [one.id for one in CASES]
every_case = pytest.mark.parametrize("one", CASES, ids=IDS)


def test_ids_are_unique_and_those_of_the_catalogue() -> None:
    assert len(set(IDS)) == len(IDS)
    assert set(IDS) <= {f"T{number:02}" for number in range(1, 58)}


@every_case
def test_a_case_has_a_title_a_public_source_and_observables(one: Case) -> None:
    assert one.title
    assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", one.source)
    assert one.component in COMPONENTS
    assert one.observables
    assert set(one.observables) <= set(OBSERVABLES)


@every_case
def test_a_case_is_planted_or_says_why_not(one: Case) -> None:
    assert bool(one.plant) != bool(one.reason)
    if one.plant:
        assert one.plant in FAULTS
        assert one.oracles
        assert set(one.oracles) <= set(ORACLES)


@every_case
def test_the_fleet_of_a_case_is_complete_and_has_no_plant(one: Case) -> None:
    assert not one.fleet.plants
    assert one.fleet.engine == "sim"


def test_a_case_by_its_id() -> None:
    assert case("T01").plant == "host-copy-forgotten"
    with pytest.raises(UsageError, match=r"unknown case 'T99'; expected one of: T01"):
        case("T99")

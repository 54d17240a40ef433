"""Known defects are told apart by oracle, facts and version; everything else is new."""

from __future__ import annotations

import pytest

from tierfuzz.defects.known import SIGNATURES, known_defect
from tierfuzz.defects.programs import PROGRAMS
from tierfuzz.oracles.registry import ORACLES
from tierfuzz.program import FleetConfig, WritePolicy
from tierfuzz.report.defects import NOT_SHOWN
from tierfuzz.verdict import Outcome, Verdict

Facts = dict[str, str | int | float | bool | None]
REVIVED: Facts = {"tier": "device", "shared_hash": False, "revival_candidate": True}
SHARED: Facts = {"tier": "device", "shared_hash": True, "revival_candidate": False}
PLAIN: Facts = {"tier": "device", "shared_hash": False, "revival_candidate": False}
HOST: Facts = {"tier": "host", "shared_hash": False}


def named(
    oracle: str, facts: Facts, version: str = "0.5.17", policy: WritePolicy = "write_through", page: int = 16
) -> str:
    """The defect that a violation on a real engine of this version is."""
    config = FleetConfig(engine="sglang", engine_version=version, policy=policy, page_size=page)
    return known_defect(Verdict(oracle, Outcome.VIOLATION, 0, "op", "m", facts=facts), config)


@pytest.mark.parametrize(
    ("oracle", "facts", "defect"),
    [
        ("unmatched-removal", REVIVED, "B7"),
        ("unmatched-removal", PLAIN, ""),
        ("unmatched-removal", SHARED, ""),  # counted per copy, aliasing alone makes no orphan in 0.5.17
        ("unmatched-removal", {**REVIVED, "tier": "host"}, ""),
        ("duplicate-store", SHARED, "B6c"),
        ("duplicate-store", PLAIN, ""),
        ("namespace-leak", {}, "B6"),
        ("host-miss", REVIVED, ""),
        ("orphan-parent", HOST, ""),
    ],
)
def test_a_violation_is_named_by_what_its_defect_does(oracle: str, facts: Facts, defect: str) -> None:
    assert named(oracle, facts) == defect


def test_a_version_without_the_defect_is_accused_anew() -> None:
    assert named("unmatched-removal", REVIVED, "0.5.23") == ""
    assert named("namespace-leak", {}, "0.5.23") == ""
    assert named("duplicate-store", SHARED, "0.5.23") == "B6c"


def test_children_before_parents_are_known_under_write_back_only() -> None:
    assert named("orphan-parent", HOST, policy="write_back") == "E5"
    assert named("orphan-parent", {"tier": "device"}, policy="write_back") == ""
    assert named("orphan-parent", HOST, "0.5.23", "write_back") == ""


def test_a_wrong_split_is_known_where_a_short_host_part_is_declined() -> None:
    facts: Facts = {"cached": 0, "device": 0, "host": 8}
    assert named("split-sum", facts, page=4) == "B5"
    assert named("split-sum", facts, page=16) == ""
    assert named("split-sum", {**facts, "host": 12}, page=4) == ""


def test_a_healthy_profile_has_no_known_defect() -> None:
    verdict = Verdict("unmatched-removal", Outcome.VIOLATION, 0, "op", "m", facts=REVIVED)
    assert known_defect(verdict, FleetConfig()) == ""
    assert known_defect(verdict, FleetConfig(profile="sglang-0.5.17")) == "B7"


def test_every_signature_has_an_oracle_and_a_defect_of_the_page() -> None:
    assert {signature.oracle for signature in SIGNATURES} <= set(ORACLES)
    assert {signature.defect for signature in SIGNATURES} <= {*PROGRAMS, *NOT_SHOWN}

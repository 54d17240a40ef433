"""Known defects are told apart by oracle, facts and version; everything else is new."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierfuzz.defects.entry import KnownDefect, parse_known
from tierfuzz.defects.known import known_defect, load_known, shipped, unseen
from tierfuzz.defects.programs import PROGRAMS
from tierfuzz.errors import FormatError, UsageError
from tierfuzz.oracles.registry import ORACLES
from tierfuzz.program import FleetConfig, WritePolicy
from tierfuzz.report.defects import NOT_SHOWN
from tierfuzz.verdict import Outcome, Verdict

Facts = dict[str, str | int | float | bool | None]
REVIVED: Facts = {"tier": "device", "shared_hash": False, "revival_candidate": True}
SHARED: Facts = {"tier": "device", "shared_hash": True, "revival_candidate": False}
PLAIN: Facts = {"tier": "device", "shared_hash": False, "revival_candidate": False}
HOST: Facts = {"tier": "host", "shared_hash": False, "parent_left_device": True}


def named(
    oracle: str,
    facts: Facts,
    version: str = "0.5.17",
    policy: WritePolicy = "write_through",
    page: int = 16,
    storage: int = 0,
) -> str:
    """The defect that a violation on a real engine of this version is."""
    config = FleetConfig(
        engine="sglang", engine_version=version, policy=policy, page_size=page, storage_threshold=storage
    )
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
        ("host-miss", REVIVED, ""),
        ("orphan-parent", HOST, ""),
    ],
)
def test_a_violation_is_named_by_what_its_defect_does(oracle: str, facts: Facts, defect: str) -> None:
    assert named(oracle, facts) == defect


def test_a_version_without_the_defect_is_accused_anew() -> None:
    assert named("unmatched-removal", REVIVED, "0.5.23") == ""
    assert named("namespace-leak", {}, "0.5.23", storage=64) == ""
    assert named("duplicate-store", SHARED, "0.5.23") == "B6c"


def test_children_before_parents_are_known_under_write_back_only() -> None:
    assert named("orphan-parent", HOST, policy="write_back") == "E5"
    assert named("orphan-parent", {**HOST, "tier": "device"}, policy="write_back") == ""
    assert named("orphan-parent", {**HOST, "parent_left_device": False}, policy="write_back") == ""
    assert named("orphan-parent", HOST, "0.5.23", "write_back") == ""


def test_leaks_and_misses_of_storage_are_known_where_they_come_from_namespaces() -> None:
    missed: Facts = {"namespaced": True, "held": 0, "storage_pages": 0}
    assert named("phantom-hit", {"elsewhere": True}, storage=32) == "B6"
    assert named("phantom-hit", {"elsewhere": False}, storage=32) == ""
    assert named("phantom-hit", {"elsewhere": True}) == ""
    assert named("storage-miss", missed, storage=32) == named("storage-claim", missed, storage=32) == "B6b"
    assert named("storage-miss", {**missed, "namespaced": False}, storage=32) == ""
    assert named("storage-miss", missed, "0.5.23", storage=32) == ""


def test_selective_copies_too_early_in_one_version() -> None:
    assert named("early-backup", {"blocks": 4}, policy="write_through_selective") == "B8"
    assert named("early-backup", {"blocks": 4}, "0.5.23", "write_through_selective") == ""


def test_a_small_host_that_fills_up_is_known() -> None:
    verdict = Verdict("no-backup", Outcome.VIOLATION, 0, "op", "m", facts={"blocks": 4})
    small = FleetConfig(engine="sglang", engine_version="0.5.17", host_ratio=0.5)
    assert known_defect(verdict, small) == "N3"
    assert known_defect(verdict, FleetConfig(engine="sglang", engine_version="0.5.17")) == ""


def test_a_wrong_split_is_known_where_a_short_host_part_is_declined() -> None:
    facts: Facts = {"cached": 0, "device": 0, "host": 8}
    assert named("split-sum", facts, page=4) == "B5"
    assert named("split-sum", facts, page=16) == ""
    assert named("split-sum", {**facts, "host": 12}, page=4) == ""


def test_a_healthy_profile_has_no_known_defect() -> None:
    verdict = Verdict("unmatched-removal", Outcome.VIOLATION, 0, "op", "m", facts=REVIVED)
    assert known_defect(verdict, FleetConfig()) == ""
    assert known_defect(verdict, FleetConfig(profile="sglang-0.5.17")) == "B7"


def test_a_leak_through_storage_is_known_where_there_is_storage() -> None:
    assert named("namespace-leak", {}, storage=64) == "B6"
    assert named("namespace-leak", {}) == ""


def test_every_entry_has_an_oracle_and_a_defect_of_the_page() -> None:
    assert {entry.oracle for entry in shipped()} <= set(ORACLES)
    assert {entry.id for entry in shipped()} <= {*PROGRAMS, *NOT_SHOWN}
    assert {version for entry in shipped() for version in entry.versions} == {"0.5.17", "0.5.23"}


# files ---------------------------------------------------------------------------------------------
ONE = """{"kind": "known-defects", "format": 1, "versions": ["0.5.17"], "entries": [
  {"id": "X", "title": "t", "oracle": "split-sum", "link": "l", "facts": {"host": {"min": 1, "max": 9}},
   "fleet": {"workers": 2}}]}"""


def entry_of(text: str) -> KnownDefect:
    """The only entry of a file."""
    (entry,) = parse_known(text.encode(), "mine.json")
    return entry


@pytest.mark.parametrize(
    ("facts", "explained"),
    [({"host": 1}, True), ({"host": 9}, True), ({"host": 10}, False), ({"host": True}, False), ({}, False)],
)
def test_every_named_fact_has_to_be_there_and_to_fit(facts: Facts, explained: bool) -> None:
    verdict = Verdict("split-sum", Outcome.VIOLATION, 0, "op", "m", facts=facts)
    assert entry_of(ONE).explains(verdict) is explained


def test_one_and_true_are_different_facts() -> None:
    entry = entry_of(ONE.replace('{"min": 1, "max": 9}', "true"))
    assert entry.explains(Verdict("split-sum", Outcome.VIOLATION, 0, "op", "m", facts={"host": True}))
    assert not entry.explains(Verdict("split-sum", Outcome.VIOLATION, 0, "op", "m", facts={"host": 1}))


def test_an_entry_applies_to_its_versions_and_fleets() -> None:
    entry = entry_of(ONE)
    assert entry.applies(FleetConfig(workers=2), "0.5.17")
    assert not entry.applies(FleetConfig(workers=1), "0.5.17")
    assert not entry.applies(FleetConfig(workers=2), "0.5.23")
    assert not entry.applies(FleetConfig(workers=2), "")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"format": 1', '"format": 2'), "expected ('known-defects', 1)"),
        (("split-sum", "splitsum"), "names the oracle 'splitsum'"),
        (('"workers"', '"wokers"'), "['wokers'], which no fleet has"),
        (('"facts"', '"fact"'), "unknown field `fact`"),
        (("{", "["), "no file of known defects"),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason(change: tuple[str, str], message: str) -> None:
    with pytest.raises(FormatError) as caught:
        entry_of(ONE.replace(*change))
    assert message in str(caught.value)


def test_files_are_found_by_path_or_by_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(ONE)
    assert load_known(str(path)) == (entry_of(ONE),)
    assert load_known("sglang-0.5.17")
    with pytest.raises(UsageError, match=r"--known gone: no such file; expected a path or one of"):
        load_known("gone")


def test_what_could_have_shown_and_did_not_is_named_once() -> None:
    entries = load_known("sglang-0.5.17")
    write_back = FleetConfig(profile="sglang-0.5.17", policy="write_back")
    assert [entry.id for entry in unseen(entries, [write_back], {"B7"})] == ["B6c", "E5"]
    assert [entry.id for entry in unseen(entries, [FleetConfig(profile="sglang-0.5.17")], {"B7"})] == ["B6c"]
    assert unseen(entries, [FleetConfig()], set()) == []

"""The rules bite: each one broken alone makes a recording of the real engine disagree with the model.

That they agree unbroken is what tests/test_conform.py shows of the same recordings.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tierfuzz.compare import Comparison, compare
from tierfuzz.errors import UsageError
from tierfuzz.model.pools import EngineCrash
from tierfuzz.model.replay import recorded_rules, replay
from tierfuzz.model.rules import DEFAULT, PROFILES, SGLANG_0_5_17, rules_for
from tierfuzz.recording import Recording, read_recording

RECORDINGS = Path(__file__).parent.parent / "recordings"

# A recording in which the rule matters, and the rule otherwise.
BROKEN: tuple[tuple[str, str, bool | int], ...] = (
    ("wt-p16-chunk128", "chunk_counts_hits", True),
    ("wt-p16-chunk128", "chunk_extra_page", False),
    ("wt-p16-chunk128", "chunk_inserts_first", False),
    ("wt-p16-chunk128", "chunks_publish", False),
    ("wt-p16-chunk128", "child_waits_parent_ack", True),
    ("wt-p16-chunk128", "counts_discarded", False),
    ("wb-p16-chunk128", "loaded_take_budget", True),
    ("wt-p16-logprob", "logprob_caps", False),
    ("wt-p4", "load_back_threshold", 0),
    ("wt-p4", "load_back_threshold", 8),
    ("wt-p4", "load_back_threshold", 16),
    ("wt-p4", "declined_split_wrong", False),
    ("wt-p1", "single_slot_extra", 1),
    ("sel-p16-h528", "selective_threshold", 1),
    ("sel-p16-h528", "selective_threshold", 3),
    ("sel-p16-h528", "split_keeps_hits", False),
    ("wb-p16-h528", "staged_host_protected", False),
    ("wb-p16-h528", "load_back_protects", False),
    ("wb-p16-h528", "drop_when_full", False),
    ("wb-p16-h528", "drop_commits_first", False),
    ("wt-p16-h528", "futile_host_eviction", False),
    ("wt-p16-h528", "retry_failed_backup", False),
    ("wt-p16-h528", "backup_needs_parent", False),
    ("write_back-p16", "child_first_host_stores", False),
    ("write_back-p16", "decode_reserves_always", False),
    ("write_back-p16", "exact_fit_evicts", False),
    ("write_back-p16", "host_evicts_full", False),
    ("write_back-p16", "insert_refreshes", False),
    ("write_back-p16", "load_back_evicts_full", False),
    ("write_back-p16", "load_back_keeps_host", False),
    ("write_back-p16", "parent_joins_device", False),
    ("write_back-p16", "parent_joins_host", False),
    ("write_back-p16", "removal_first", False),
    ("write_back-p16", "silent_revival", False),
    ("write_through-p16", "acks_at_end", True),
    ("write_through-p16", "finish_drops_last", True),
    ("write_through-p16", "last_output_not_decoded", True),
    ("write_through-p16", "lone_insert_for_one", True),
    ("write_through-p16", "namespace_aliasing", False),
    ("write_through-p16", "refresh_remainder", False),
    ("write_through-p16", "second_match_capped", True),
)


@cache
def recorded(name: str) -> Recording:
    """A recording of 0.5.17, read once."""
    return read_recording(RECORDINGS / f"sglang-0.5.17-{name}.jsonl.xz")


def compared(name: str, **changes: bool | int) -> Comparison | None:
    """The recording against the model with some rules changed; None where the model gives up."""
    recording = recorded(name)
    rules = recorded_rules(recording.header).but(**changes)
    try:
        return compare(recording, replay(recording, rules))
    except (EngineCrash, AssertionError):
        return None


@pytest.mark.parametrize(("name", "rule", "value"), BROKEN)
def test_a_broken_rule_is_noticed(name: str, rule: str, value: bool | int) -> None:
    assert getattr(recorded_rules(recorded(name).header), rule) != value
    found = compared(name, **{rule: value})
    assert found is None or (not found.ok and found.differences)


def test_two_hits_a_request_are_noticed() -> None:
    found = compared("sel-p16-h528", two_hits_a_request=False)
    assert found is not None
    assert not found.ok


def test_an_unknown_rule_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"unknown rule no_such_rule; known rules: .*silent_revival"):
        DEFAULT.but(no_such_rule=True)


def test_changed_rules_are_a_copy() -> None:
    assert SGLANG_0_5_17.but(silent_revival=False) != SGLANG_0_5_17
    assert rules_for("sglang-0.5.17").silent_revival


def test_profiles_are_found_by_name() -> None:
    assert {name: rules_for(name) for name in PROFILES} == PROFILES
    with pytest.raises(
        UsageError, match=r"unknown profile 'sglang-9'; expected one of: default, sglang-0\.5\.17"
    ):
        rules_for("sglang-9")

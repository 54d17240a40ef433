"""The small checks inside repro.py: each accuses what it is for, and nothing else."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tierfuzz.oracles.judge import Judge
from tierfuzz.program import FleetConfig
from tierfuzz.report.handover.repro import check_names
from tierfuzz.report.handover.script import checks
from tierfuzz.report.handover.script.main import judge
from tierfuzz.report.handover.script.operations import leading, token
from tierfuzz.report.handover.script.run import Run, Undecided
from tierfuzz.report.handover.steps import FALLBACK

SETUP = {
    "policy": "write_through",
    "page": 16,
    "device_pages": 8,
    "host_pages": 25,
    "removal_first": False,
    "backup_hits": 1,
    "silent_revival": False,
    "empty": True,
}
REPLY = {"prompt": 100, "cached": 48, "device": 16, "host": 32, "storage": 0, "outputs": [1, 2]}
REPLY |= {"aborted": False, "claimed": (3, 1, 0), "blocks": [1, 2, 3, 4], "pages": [1, 2, 3]}
REPLY |= {"usable": [1, 2, 3], "host_only": {2, 3}}
VIEW = {"total_low": 3, "total_high": 3, "device_low": 1, "device_high": 1}
LOADS = {"loads_low": 2, "loads_high": 2}


def run(**other: Any) -> Run:
    """A run in which op1 was answered with REPLY, changed by `other`, and "first" with the same outputs."""
    made = Run(SETUP, [None], [None])  # type: ignore[list-item]
    made.replies = {"op1": {**REPLY, **other}, "first": dict(REPLY)}
    group = {"told": {1, 2}, "left": set(other.get("left", ())), "loads": Counter({2: 1, 3: 1})}
    made.groups = [{"ids": ["op1"], "replies": [made.replies["op1"]], **group}]
    made.levels = [{"locked device tokens": other.get("locked", 0.0)}]
    made.beyond = other.get("beyond", [])
    made.events = [object()]  # type: ignore[list-item]
    made.books[0].odd = [("no-backup", text) for text in other.get("bare", [])]
    return made


FINE: list[tuple[str, dict[str, Any]]] = [
    ("prefix_miss", {"held": 48}),
    ("phantom_hit", {"most": 48}),
    ("clear_scope", {"most": 48}),
    ("split_sum", {"page": 16}),
    ("content", {"first": "first"}),
    ("ledger_accounting", VIEW),
    ("overlap_miss", {"stayed": 3}),
    ("overlap_excess", {"most": 3, "most_device": 1}),
    ("host_unseen", {}),
    ("load_accounting", LOADS),
    ("insert_bound", {"sure": 2, "worker": 0}),
    ("storage_miss", {"own": 0}),
    ("storage_phantom", {"own": 0, "any_owner": 0}),
    ("namespace_leak", {"own": 0, "any_owner": 2, "threshold": 32}),
    ("storage_below_threshold", {"threshold": 32}),
    ("leak_at_rest", {"gauge": "locked device tokens", "worker": 0}),
    ("pool_levels", {"worker": 0}),
    ("no_backup", {}),
]
WRONG: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("host_miss", {"host_only": 48}, {"device": 0, "host": 32}),
    ("host_miss", {"host_only": 32}, {}),  # some of it came from device
    ("prefix_miss", {"held": 64}, {}),
    ("phantom_hit", {"most": 32}, {}),
    ("clear_scope", {"most": 32}, {}),
    ("split_sum", {"page": 16}, {"cached": 64}),
    ("split_sum", {"page": 16}, {"cached": 47, "host": 31}),
    ("content", {"first": "first"}, {"outputs": [1, 3]}),
    ("ledger_accounting", VIEW, {"claimed": (2, 1, 0)}),
    ("ledger_accounting", VIEW, {"claimed": (3, 2, 0)}),
    ("overlap_miss", {"stayed": 3}, {"cached": 32}),
    ("overlap_excess", {"most": 2, "most_device": 1}, {"claimed": (2, 1, 0)}),
    ("overlap_excess", {"most": 3, "most_device": 0}, {"claimed": (3, 0, 0)}),
    ("host_unseen", {}, {"device": 48, "host": 0}),
    ("load_accounting", LOADS, {"host": 48}),
    ("insert_bound", {"sure": 3, "worker": 0}, {}),
    ("storage_miss", {"own": 2}, {"storage": 16, "claimed": (1, 1, 2)}),
    ("storage_phantom", {"own": 0, "any_owner": 0}, {"storage": 16}),
    ("namespace_leak", {"own": 0, "any_owner": 2, "threshold": 32}, {"storage": 32}),
    ("storage_below_threshold", {"threshold": 32}, {"storage": 16}),
    ("leak_at_rest", {"gauge": "locked device tokens", "worker": 0}, {"locked": 16.0}),
    ("pool_levels", {"worker": 0}, {"beyond": ["used on host: -16 of 400 tokens"]}),
    ("no_backup", {}, {"bare": ["op1#0 has no host copy"]}),
]


@pytest.mark.parametrize(("name", "facts"), FINE)
def test_a_check_is_silent_on_what_is_right(name: str, facts: dict[str, Any]) -> None:
    assert getattr(checks, name)(run(), "op1", facts) == ""


def test_a_prefix_served_from_host_alone_is_right() -> None:
    assert checks.host_miss(run(device=0, host=48), "op1", {"host_only": 48}) == ""


@pytest.mark.parametrize(("name", "facts", "seen"), WRONG)
def test_a_check_names_what_is_wrong(name: str, facts: dict[str, Any], seen: dict[str, Any]) -> None:
    assert getattr(checks, name)(run(**seen), "op1", facts)


def test_every_check_is_tried_both_ways() -> None:
    tried = {name for name, _ in FINE} | {"host_miss", FALLBACK}
    assert tried == {name for name, _, _ in WRONG} | {FALLBACK} == set(check_names())


def test_an_interval_of_the_accusation_leaves_room() -> None:
    wide = {**VIEW, "total_high": 4, "device_high": 2}
    assert checks.ledger_accounting(run(claimed=(4, 2, 0)), "op1", wide) == ""
    assert checks.ledger_accounting(run(claimed=(5, 2, 0)), "op1", wide)


def test_what_events_say_now_counts_as_well_as_the_accusation() -> None:
    assert checks.overlap_miss(run(), "op1", {"stayed": 9}) == ""
    assert checks.overlap_miss(run(cached=32, left=[3]), "op1", {"stayed": 3}) == ""
    assert checks.overlap_excess(run(), "op1", {"most": 0, "most_device": 0}) == ""
    assert checks.storage_miss(run(storage=16, claimed=(1, 1, 1)), "op1", {"own": 2}) == ""
    never = {"own": 0, "any_owner": 0}
    assert checks.storage_phantom(run(storage=16, claimed=(1, 1, 1)), "op1", never) == ""
    assert checks.storage_phantom(run(storage=16, left=[2]), "op1", never) == ""
    assert checks.storage_phantom(run(storage=16, claimed=None), "op1", never)


def test_under_selective_only_announced_copies_must_be_there() -> None:
    made = run(device=0, host=48)
    assert checks.prefix_miss(made, "op1", {"held": 64})
    made.setup = {**SETUP, "policy": "write_through_selective"}
    assert checks.prefix_miss(made, "op1", {"held": 64}) == ""
    assert checks.host_miss(made, "op1", {"host_only": 64}) == ""
    made.replies["op1"]["claimed"] = (4, 0, 0)
    assert checks.host_miss(made, "op1", {"host_only": 64})


def test_a_page_that_one_of_them_computed_anew_is_not_missed() -> None:
    made = run(device=48, host=0)
    made.groups[0]["replies"].append({**REPLY, "cached": 16, "device": 16, "host": 0})
    assert checks.host_unseen(made, "op1", {}) == ""
    with pytest.raises(Undecided, match="no events"):
        checks.host_unseen(run(claimed=None), "op1", {})


def test_pages_computed_anew_are_no_loads() -> None:
    made = run()
    made.groups[0]["loads"] = Counter([2, 3, 4])  # block 4 is behind the 48 cached tokens
    assert checks.load_accounting(made, "op1", LOADS) == ""
    made.setup = {**SETUP, "silent_revival": True}
    assert checks.load_accounting(made, "op1", LOADS)


@pytest.mark.parametrize("seen", [{"failed": "reset"}, {"prompt": None}])
def test_nothing_is_said_of_a_request_without_a_reply(seen: dict[str, Any]) -> None:
    with pytest.raises(Undecided, match="op1 has no usable answer"):
        checks.host_miss(run(**seen), "op1", {"host_only": 16})
    with pytest.raises(Undecided):
        checks.host_miss(run(), "op9", {"host_only": 16})


def test_nothing_is_said_without_events_or_gauges() -> None:
    with pytest.raises(Undecided, match="no events"):
        checks.ledger_accounting(run(claimed=None), "op1", VIEW)
    with pytest.raises(Undecided, match="does not tell num_queue_reqs"):
        checks.leak_at_rest(run(), "op1", {"gauge": "num_queue_reqs", "worker": 0})
    made = run()
    made.events, made.levels = [None], [{}]
    with pytest.raises(Undecided, match="no events"):
        checks.no_backup(made, "op1", {})
    with pytest.raises(Undecided, match="no levels"):
        checks.pool_levels(made, "op1", {"worker": 0})
    made.setup = {**SETUP, "backup_hits": 0}
    with pytest.raises(Undecided, match="may leave pages"):
        checks.no_backup(made, "op1", {})


def test_levels_beyond_a_pool_are_named() -> None:
    fine = {"kv_available_tokens": 64.0, "kv_evictable_tokens": 64.0, "hicache_host_used_tokens": 400.0}
    assert run().beyond_pools(fine) == []
    for name, value in (("kv_available_tokens", 129.0), ("kv_evictable_tokens", 65.0)):
        assert len(run().beyond_pools({**fine, name: value})) >= 1
    assert run().beyond_pools({"hicache_host_used_tokens": -16.0}) == ["used on host: -16 of 400 tokens"]


def test_the_fallback_holds_every_reply_against_its_forecast() -> None:
    made = run()
    made.expected = {"op1": {"most": 48, "held": 48, "expected": "exactly 48"}}
    assert checks.accounting(made, "op1", {}) == ""
    made.expected["op1"]["most"] = 32
    assert "expected exactly 48" in checks.accounting(made, "op1", {})
    made.expected["op1"] |= {"most": 48, "host_only": 48}
    assert checks.accounting(made, "op1", {})


def check(oracle: str, by: str, **facts: Any) -> dict[str, Any]:
    """An accusation of worker 0 at op1."""
    return {"oracle": oracle, "at": "op1", "worker": 0, "by": by, "facts": facts}


def test_the_verdict_says_bug_not_seen_or_undecided(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tierfuzz.report.handover.script import main

    monkeypatch.setattr(main, "CHECKS", {name: getattr(checks, name) for name in check_names()})
    made = run()
    made.events = [None]
    assert not judge(made, [check("phantom-hit", "phantom_hit", most=48)])
    assert not judge(made, [check("duplicate-store", "events")])
    assert "undecided: no events were read" in capsys.readouterr().out
    assert judge(
        made, [check("phantom-hit", "phantom_hit", most=48), check("prefix-miss", "prefix_miss", held=64)]
    )
    assert not judge(made, [check("new-oracle", FALLBACK)])
    out = capsys.readouterr().out
    assert "prefix-miss at op1: BUG: cached 48 tokens; 64 must still be held" in out
    assert "new-oracle needs the whole model" in out


def test_a_lost_worker_is_a_bug_where_that_was_accused() -> None:
    made = run()
    made.failed = [("crash", "op1: ConnectError")]
    assert judge(made, [check("crash", "transport")])
    assert not judge(made, [check("hang", "transport")])


def test_the_levels_at_rest_have_the_names_of_the_oracle() -> None:
    metrics = ("num_running_reqs", "num_queue_reqs", "kv_available_tokens", "kv_evictable_tokens")
    gauges = dict.fromkeys((*metrics, "hicache_host_used_tokens"), 3.0)
    judge_of_the_package = Judge(FleetConfig(), 0)
    judge_of_the_package.gauges({f"sglang:{name}": value for name, value in gauges.items()})
    made = run()
    levels = made.levels_from(0, gauges)
    assert {v.facts["gauge"]: v.facts["value"] for v in judge_of_the_package.take_verdicts()} == {
        **levels,
        "locked device tokens": FleetConfig().device_tokens - 6,
    }
    assert levels["locked device tokens"] == 8 * 16 - 6


def test_a_defect_of_the_script_is_not_one_of_the_worker(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tierfuzz.report.handover.script import main

    monkeypatch.setattr("sys.argv", ["repro.py", "--worker", "http://127.0.0.1:1"])
    monkeypatch.setattr(main, "connect", lambda *_: 1 / 0)
    setup = {"title": "", "key": "", "empty": True, "workers": ["http://127.0.0.1:1"]}
    assert main.main(setup, [], []) == main.NOT_REACHABLE
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_tokens_follow_the_rule_of_the_recordings() -> None:
    from tierfuzz.prompts import Piece, tokens_of

    assert tuple(token("some/stream", index) for index in range(3, 40)) == tokens_of(
        (Piece("some/stream", 3, 40),)
    )
    assert [leading(flags) for flags in ([], [True, False, True], [True, True])] == [0, 1, 2]

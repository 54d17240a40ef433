"""The search: small results that are checked, few runs, n of m, budgets, and going on after a kill."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from generated import program_of
from hypothesis import given
from hypothesis import strategies as st
from modelled_fleet import ModelledFleet

from tierfuzz.clock import FakeClock
from tierfuzz.errors import UsageError
from tierfuzz.faults.registry import FAULTS
from tierfuzz.program import Fill, FleetConfig, Generate, Hold, Idle, Operation, Program
from tierfuzz.prompts import Piece
from tierfuzz.shrink.budget import Limits, Meter
from tierfuzz.shrink.canon import key_of
from tierfuzz.shrink.fewer import removals
from tierfuzz.shrink.result import ShrinkResult
from tierfuzz.shrink.search import Search
from tierfuzz.shrink.trials import Run, Trials, Tried, tries_for
from tierfuzz.verdict import Outcome, Verdict

FLEET = FleetConfig(host_ratio=3.0)


def violation(operation: str = "", seen: int = 1, tries: int = 1) -> Verdict:
    return Verdict("host-miss", Outcome.VIOLATION, 0, operation, "message", seen=seen, tries=tries)


def searched(
    program: Program,
    run: Run,
    verdict: Verdict | None = None,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    tries: int = 0,
    accept: int = 1,
    earlier: Sequence[Tried] = (),
    note: Callable[[Tried], None] = lambda _: None,
    oracle: str = "",
) -> ShrinkResult | None:
    trials = Trials(run, Meter(limits, FakeClock()), oracle, accept, tries, earlier, note)
    search = Search(program, trials)
    search.go(verdict)
    return search.result()


def needing(*needed: str) -> Run:
    """Fails at the last of these requests, when all are there."""

    def run(program: Program) -> list[Verdict]:
        names = [operation.id for operation in program.operations]
        return [violation(needed[-1])] if set(needed) <= set(names) else []

    return run


def idles(number: int) -> Program:
    """Operations that can be told apart by their id only: workers differ, so no two are the same."""
    fleet = FleetConfig(workers=number)
    return Program(fleet, tuple(Idle(f"op{i}", i) for i in range(number)))


# faults on modelled workers ------------------------------------------------------------------------
FAULTY = [
    "host-copy-forgotten", "no-backup", "wrong-host-content", "removal-at-backup", "host-store-lost",
    "store-on-split", "swapped-order", "phantom-page", "flush-leaks-host", "abort-keeps-lock",
]  # fmt: skip


def failing(fault: str) -> tuple[Program, Verdict]:
    """The first of a row of random programs of 30 operations that shows the fault."""
    for seed in range(40):
        program = program_of(
            FleetConfig(host_ratio=3.0, policy="write_through", plants=(fault,)), random.Random(seed), 30
        )
        for verdict in ModelledFleet().run(program):
            if verdict.is_violation and verdict.oracle == FAULTS[fault].oracle:
                return program, verdict
    raise AssertionError(f"no program shows {fault}")


@pytest.mark.parametrize("fault", FAULTY)
def test_a_faults_program_gets_small_in_few_runs_and_is_checked(fault: str) -> None:
    program, verdict = failing(fault)
    fleet = ModelledFleet()
    result = searched(program, fleet.run, verdict)
    assert result is not None
    assert (result.runs, result.operations) == (fleet.runs, fleet.operations)
    assert result.runs <= 60
    assert result.operations <= 400
    assert result.length <= 8
    assert (result.minimal, result.unchecked) == (True, ())
    assert fails(result.program, verdict.oracle)
    assert not any(fails(rest, verdict.oracle) for _, rest in removals(result.program) if rest.operations)


def fails(program: Program, oracle: str) -> bool:
    return any(v.is_violation and v.oracle == oracle for v in ModelledFleet().run(program))


def test_a_healthy_program_is_not_shrunk() -> None:
    program, verdict = failing("host-copy-forgotten")
    healthy = Program(FLEET, program.operations)
    assert searched(healthy, ModelledFleet().run) is None
    assert searched(healthy, ModelledFleet().run, verdict) is None


def test_what_is_special_about_a_program_but_not_needed_goes() -> None:
    long, spare = Piece("A", 0, 165), Piece("x", 0, 9)
    operations: list[Operation] = [
        Hold("h", 1),
        Generate("a", 1, (long, spare), 18, "namespaced", "n"),
        Fill("f", 1, "f", share=2.0, outputs=2),
        Generate("b", 1, (long, spare), 3, "probe", "n"),
        Idle("i", 0),
    ]
    plants = ("host-copy-forgotten", "payload-truncated")
    fleet = FleetConfig(host_ratio=3.0, workers=3, plants=plants, ack_delay_ms=1.0)
    verdict = Verdict("host-miss", Outcome.VIOLATION, 1, "b", "message")
    result = searched(Program(fleet, tuple(operations)), ModelledFleet().run, verdict)
    assert result is not None
    assert result.program.fleet == FleetConfig(host_ratio=3.0, workers=1, plants=plants[:1])
    assert result.program.operations == (
        Generate("a", 0, (Piece("A", 0, 21),), 1, "namespaced"),
        Fill("f", 0, "f", share=1.0),
        Generate("b", 0, (Piece("A", 0, 21),), 1, "probe"),
    )


# the check -----------------------------------------------------------------------------------------
@given(st.sets(st.integers(0, 19), min_size=1, max_size=6), st.booleans())
def test_exactly_what_is_needed_is_left(needed: set[int], told: bool) -> None:
    names = [f"op{i}" for i in sorted(needed)]
    result = searched(idles(20), needing(*names), violation(names[-1]) if told else None)
    assert result is not None
    assert [operation.id for operation in result.program.operations] == names
    assert result.minimal is True


@given(st.sets(st.integers(0, 19), min_size=1, max_size=6), st.integers(1, 40), st.integers(1, 200))
def test_no_budget_is_exceeded_and_what_it_left_open_is_named(
    needed: set[int], runs: int, operations: int
) -> None:
    names = [f"op{i}" for i in sorted(needed)]
    result = searched(idles(20), needing(*names), None, Limits(runs, operations))
    if result is None:  # not even one run was allowed
        assert operations < 20 / 0.8 or runs < 2
        return
    assert result.runs <= runs
    assert result.operations <= operations
    assert set(names) <= {operation.id for operation in result.program.operations}
    assert (result.minimal is None) == bool(result.unchecked)
    assert bool(result.unchecked) <= bool(result.stopped)


@given(st.sets(st.integers(0, 19), min_size=1, max_size=6))
def test_no_program_runs_twice_but_the_last(needed: set[int]) -> None:
    tried: list[Tried] = []
    searched(idles(20), needing(*[f"op{i}" for i in sorted(needed)]), None, note=tried.append)
    keys = [one.key for one in tried]
    assert len(keys) == len(set(keys)) + 1


def test_a_removal_that_fails_too_seldom_is_said() -> None:
    whole = idles(2)
    rates = {key_of(whole): [1, 1, 1]}
    small = {key_of(rest): [1, 0, 0] for _, rest in removals(whole)}
    result = searched(whole, Scripted({**rates, **small}), None, tries=3, accept=2)
    assert result is not None
    assert result.program == whole
    assert result.minimal is False
    assert "too seldom" in result.sentence


# n of m --------------------------------------------------------------------------------------------
class Scripted:
    """Each program fails by its own script (1 fails), its last entry for ever; unknown ones pass."""

    def __init__(self, scripts: dict[str, list[int]]) -> None:
        self.scripts = {key: list(script) for key, script in scripts.items()}
        self.runs = 0

    def __call__(self, program: Program) -> list[Verdict]:
        self.runs += 1
        script = self.scripts.get(key_of(program), [0])
        now = script.pop(0) if len(script) > 1 else script[0]
        return [violation()] if now else []


@pytest.mark.parametrize(
    ("script", "accept", "tries", "fails", "runs"),
    [
        ([0, 0, 1], 1, 3, True, 3),
        ([1], 1, 3, True, 1),
        ([0], 1, 3, False, 3),
        ([1, 0, 1], 2, 3, True, 3),
        ([1, 1], 2, 3, True, 2),
        ([0, 0, 1], 2, 3, False, 2),  # two passes of three: one failure is not enough any more
    ],
)
def test_n_of_m_runs_have_to_fail_and_no_more_are_made(
    script: list[int], accept: int, tries: int, fails: bool, runs: int
) -> None:
    program = idles(1)
    run = Scripted({key_of(program): script})
    trials = Trials(run, Meter(Limits(), FakeClock()), "host-miss", accept, tries)
    assert trials.fails(program) is fails
    assert trials.fails(program) is fails
    assert run.runs == runs


def test_another_oracle_is_another_failure() -> None:
    trials = Trials(needing("op0"), Meter(Limits(), FakeClock()), "content", 1, 1)
    assert not trials.fails(idles(1))


def test_an_unknown_is_no_failure() -> None:
    unknown = Verdict("host-miss", Outcome.UNKNOWN, 0, "op0", "message")
    assert not Trials(lambda _: [unknown], Meter(Limits(), FakeClock()), tries=1).fails(idles(1))


@pytest.mark.parametrize(
    ("failed", "runs", "tries"), [(1, 1, 1), (3, 3, 1), (2, 3, 3), (1, 2, 4), (1, 3, 5), (1, 5, 5)]
)
def test_flaky_failures_are_tried_more_often(failed: int, runs: int, tries: int) -> None:
    assert tries_for(failed, runs) == tries


def test_the_flakiness_of_a_result_is_measured() -> None:
    whole = idles(1)
    result = searched(whole, Scripted({key_of(whole): [1, 0, 1, 0]}), violation("op0", seen=1, tries=2))
    assert result is not None
    assert (result.failed, result.tried) == (2, 5)
    assert "failed 2 of 5 times" in result.sentence


def test_a_failure_that_is_rarer_than_it_was_said_is_found_all_the_same() -> None:
    whole = idles(3)
    run = Scripted({key_of(whole): [0, 0, 1, 0, 1]})
    result = searched(whole, run, violation("op2"))
    assert result is not None
    assert result.program == whole
    assert result.failed < result.tried
    assert searched(whole, Scripted({key_of(whole): [0, 0, 1, 0, 1]}), violation("op2"), tries=1) is None


class EverySeventh:
    """A worker that counts operations from run to run, and fails at every seventh."""

    def __init__(self) -> None:
        self.done = 0

    def __call__(self, program: Program) -> list[Verdict]:
        before = self.done
        self.done += len(program.operations)
        return [violation()] if before // 7 != self.done // 7 else []


def test_what_fails_by_chance_when_small_is_left_larger() -> None:
    program = Program(FleetConfig(workers=1), tuple(Idle(f"op{i}", 0) for i in range(20)))
    result = searched(program, EverySeventh(), violation())
    assert result is not None
    assert 5 <= result.length <= 7
    assert result.failed / result.tried >= 0.75
    given = searched(program, EverySeventh(), violation(), tries=1)
    assert given is not None
    assert given.length < 5  # as often as it was asked to try
    assert given.failed < given.tried


def test_accepting_more_than_is_tried_is_refused() -> None:
    with pytest.raises(UsageError, match="accept 3 of 2 tries"):
        Trials(needing("op0"), Meter(Limits(), FakeClock()), accept=3, tries=2)


# going on ------------------------------------------------------------------------------------------
class Killed(Exception):
    """Ends a search from inside a run."""


@pytest.mark.parametrize("after", [1, 3, 8, 12])
def test_a_killed_search_goes_on_without_repeating_runs(after: int) -> None:
    program, _ = failing("host-copy-forgotten")
    whole: list[Tried] = []
    expected = searched(program, ModelledFleet().run, note=whole.append)
    first: list[Tried] = []
    fleet = ModelledFleet()

    def killed(candidate: Program) -> list[Verdict]:
        if len(first) == after:
            raise Killed
        return fleet.run(candidate)

    with pytest.raises(Killed):
        searched(program, killed, note=first.append)
    second: list[Tried] = []
    result = searched(program, fleet.run, earlier=first, note=second.append)
    assert result == expected
    assert [one.key for one in first + second] == [one.key for one in whole]
    assert fleet.runs == len(whole)


def test_what_was_spent_before_counts() -> None:
    first: list[Tried] = []
    second: list[Tried] = []
    searched(idles(8), needing("op1", "op6"), None, Limits(runs=4), note=first.append)
    result = searched(
        idles(8), needing("op1", "op6"), None, Limits(runs=6), earlier=first, note=second.append
    )
    assert result is not None
    assert (len(first), len(second), result.runs) == (4, 2, 6)
    assert result.operations == sum(tried.operations for tried in first + second)

"""Parts of the shrinker on programs: repair, sameness, guesses, fewer things, shorter prompts."""

from __future__ import annotations

import pytest

from tierfuzz.program import (
    Burst,
    Fill,
    FleetConfig,
    Flush,
    Generate,
    Hold,
    Idle,
    Operation,
    Program,
    Release,
    Restart,
)
from tierfuzz.prompts import Piece
from tierfuzz.shrink import fewer, plain
from tierfuzz.shrink.canon import key_of
from tierfuzz.shrink.guess import guesses, truncated
from tierfuzz.shrink.lengths import Gap, gaps_of, with_pages
from tierfuzz.shrink.places import position_of
from tierfuzz.shrink.repair import repaired
from tierfuzz.shrink.words import lines_of
from tierfuzz.verdict import Outcome, Verdict

A = (Piece("A", 0, 100),)


def ask(name: str, *prompt: Piece, worker: int = 0, outputs: int = 1) -> Generate:
    return Generate(name, worker, prompt or A, outputs)


def program(*operations: Operation, **fleet: object) -> Program:
    return Program(FleetConfig(**fleet), operations)  # type: ignore[arg-type]


def about(name: str, worker: int = 0) -> Verdict:
    return Verdict("host-miss", Outcome.VIOLATION, worker, name, "message")


def ids(program: Program) -> list[str]:
    return [operation.id for operation in program.operations]


# repair --------------------------------------------------------------------------------------------
def test_lost_outputs_become_a_stream_that_is_still_shared() -> None:
    grown = ask("b", *A, Piece("@a", 0, 5))
    again = ask("c", *A, Piece("@a", 0, 5), Piece("t", 0, 3))
    b, c = repaired((grown, again))
    assert isinstance(b, Generate)
    assert isinstance(c, Generate)
    assert b.prompt == (*A, Piece("lost-a", 0, 5))
    assert c.prompt[:2] == b.prompt


def test_outputs_that_are_there_are_kept_and_cut_to_what_is_asked_for() -> None:
    first = ask("a", outputs=3)
    _, b = repaired((first, ask("b", Piece("@a", 0, 5))))
    assert isinstance(b, Generate)
    assert b.prompt == (Piece("@a", 0, 3),)


def test_a_request_without_tokens_is_left_out() -> None:
    assert repaired((ask("a", outputs=0), ask("b", Piece("@a", 0, 5)))) == (ask("a", outputs=0),)


def test_requests_of_a_burst_do_not_know_each_others_outputs() -> None:
    (burst,) = repaired((Burst("x", (ask("x.0"), ask("x.1", Piece("@x.0", 0, 1)))),))
    assert isinstance(burst, Burst)
    assert burst.requests[1].prompt == (Piece("lost-x.0", 0, 1),)


def test_a_filler_without_its_target_has_none() -> None:
    fill = Fill("f", 0, "f", target="a")
    assert repaired((ask("a"), fill)) == (ask("a"), fill)
    assert repaired((fill,)) == (Fill("f", 0, "f"),)


@pytest.mark.parametrize("healer", [Release, Flush, Restart])
def test_holds_and_releases_come_in_turns(healer: type[Release] | type[Flush] | type[Restart]) -> None:
    alone: tuple[Operation, ...] = (Release("r", 0), Hold("h", 0), Hold("i", 0), Hold("j", 1))
    assert [operation.id for operation in repaired(alone)] == ["h", "j"]
    healed = repaired((Hold("h", 0), healer("x", 0), Release("r", 0), Hold("i", 0)))
    assert [operation.id for operation in healed] == ["h", "x", "i"]


# sameness ------------------------------------------------------------------------------------------
def test_names_do_not_count() -> None:
    one = program(ask("a"), Fill("f", 0, "f", target="a"), ask("b", *A, Piece("@a", 0, 1)))
    other = (Piece("Z", 0, 100),)
    two = program(ask("x", *other), Fill("y", 0, "w", target="x"), ask("z", *other, Piece("@x", 0, 1)))
    assert key_of(one) == key_of(two)


@pytest.mark.parametrize(
    "other",
    [
        program(ask("a"), ask("b", Piece("B", 0, 100))),
        program(ask("a"), ask("b", Piece("A", 0, 99))),
        program(ask("a"), ask("b", worker=1)),
        program(ask("a"), ask("b"), page_size=64),
        program(ask("a"), ask("b"), Idle("i", 0)),
        program(Burst("x", (ask("a"), ask("b")))),
        program(ask("a"), Generate("b", 0, A, 1, namespace="n")),
    ],
)
def test_everything_else_counts(other: Program) -> None:
    assert key_of(program(ask("a"), ask("b"))) != key_of(other)


def test_the_prompts_of_a_filler_keep_their_name() -> None:
    fill, filled, other = Fill("f", 0, "F"), ask("b", Piece("F.0", 0, 9)), ask("b", Piece("G.0", 0, 9))
    assert key_of(program(fill, filled)) != key_of(program(fill, other))


# guesses -------------------------------------------------------------------------------------------
def test_a_verdict_names_an_operation_or_a_request_of_it() -> None:
    operations = (ask("op1"), Fill("op2", 0, "f"), Burst("op20", (ask("op20.0"),)))
    assert position_of(operations, "op1") == 0
    assert position_of(operations, "op2.7") == 1
    assert position_of(operations, "op20.0") == 2
    assert position_of(operations, "op3") is None


def test_what_comes_after_the_violation_goes() -> None:
    whole = program(ask("a"), Fill("f", 0, "f"), ask("b"))
    assert ids(truncated(whole, about("f.3"))) == ["a", "f"]
    assert truncated(whole, about("")) == whole


def test_guesses_grow_from_the_violating_operation_to_everything_and_never_repeat() -> None:
    whole = program(
        ask("a"), ask("z", worker=1), Flush("g", 0), ask("other", Piece("B", 0, 9)), Fill("f", 0, "f"),
        ask("p"), Fill("late", 0, "l"),
    )  # fmt: skip
    found = [ids(candidate) for candidate in guesses(whole, about("p"))]
    assert found[:2] == [["p"], ["a", "f", "p"]]
    assert ["a", "g", "f", "p"] in found
    assert found[-2:] == [["a", "z", "g", "other", "f", "p"], ids(whole)]
    assert len(found) == len({tuple(names) for names in found})


def test_guesses_of_a_verdict_without_operation_begin_with_its_worker() -> None:
    whole = program(ask("a"), ask("z", worker=1))
    assert [ids(candidate) for candidate in guesses(whole, about(""))] == [["a"], ["a", "z"]]


# fewer things --------------------------------------------------------------------------------------
def test_two_fillers_become_one_of_both_shares() -> None:
    whole = program(ask("a"), Fill("f", 0, "f", target="a"), ask("b"), Fill("g", 0, "g", share=0.5))
    (one,) = fewer.merged_fills(whole)
    assert one.operations == (ask("a"), ask("b"), Fill("g", 0, "g", share=1.5, target="a"))
    assert list(fewer.merged_fills(program(Fill("f", 0, "f"), Fill("g", 1, "g")))) == []


def test_bursts_lose_members_or_their_overlap() -> None:
    burst = Burst("x", (ask("x.0"), ask("x.1")))
    whole = program(ask("a"), burst)
    assert fewer.with_members(whole, "x", burst.requests[1:]).operations == (
        ask("a"),
        Burst("x", (ask("x.1"),)),
    )
    assert fewer.with_members(whole, "x", ()).operations == (ask("a"),)
    assert fewer.in_turn(whole, "x").operations == (ask("a"), ask("x.0"), ask("x.1"))


def test_a_shared_piece_goes_from_every_prompt() -> None:
    base, turn = Piece("A", 0, 40), Piece("t", 0, 9)
    whole = program(ask("a", base, turn), ask("b", base, turn, Piece("u", 0, 5)), ask("c", turn))
    assert (base,) in fewer.spare_pieces(whole)
    a, b, c = fewer.without_pieces(whole, ((base, turn),)).operations
    assert (a, c) == (ask("a", base), ask("c", turn))
    assert b == ask("b", base, Piece("u", 0, 5))


def test_workers_without_operations_go_and_the_rest_is_renumbered() -> None:
    whole = program(ask("a", worker=2), Burst("x", (ask("b", worker=2), ask("c", worker=0))), workers=4)
    small = fewer.fewer_workers(whole)
    assert small.fleet.workers == 2
    assert small.operations == (ask("a", worker=1), Burst("x", (ask("b", worker=1), ask("c", worker=0))))


def test_plainer_values() -> None:
    special = Generate("a", 0, A, 9, "namespaced", "n", 3, 0.0)
    whole = program(special, Fill("f", 0, "f", outputs=2))
    plainer = plain.edited(whole, plain.plainer_requests(whole) + plain.fewer_outputs(whole, 1))
    assert plainer.operations == (Generate("a", 0, A, 1, "namespaced"), Fill("f", 0, "f"))


def test_requests_of_a_filler() -> None:
    fleet = FleetConfig(page_size=16, device_tokens=1024)
    fill = Fill("f", 0, "f", share=1.2, prompt_share=0.1, target="a")  # prompts of 6 pages
    assert plain.requests_of_fill(fleet, fill) == 13
    small = plain.with_requests_of_fill(Program(fleet, (fill,)), "f", 2).operations[0]
    assert isinstance(small, Fill)
    assert (plain.requests_of_fill(fleet, small), small.target) == (2, "")


# lengths -------------------------------------------------------------------------------------------
def test_pages_are_taken_out_where_no_piece_begins_or_ends() -> None:
    whole = program(ask("a", Piece("A", 0, 100)), ask("b", Piece("A", 0, 50), Piece("B", 0, 33)))
    gaps = gaps_of(whole)
    assert gaps == [Gap("A", 0, 50), Gap("A", 50, 100), Gap("B", 0, 33)]
    a, b = with_pages(whole, dict.fromkeys(gaps, 1)).operations
    assert a == ask("a", Piece("A", 0, 36))  # 18 and 18: a page and two tokens each
    assert b == ask("b", Piece("A", 0, 18), Piece("B", 0, 17))


def test_outputs_keep_their_length() -> None:
    whole = program(ask("a", outputs=40), ask("b", Piece("@a", 0, 40)))
    assert gaps_of(whole) == [Gap("A", 0, 100)]
    assert with_pages(whole, {Gap("A", 0, 100): 2}).operations[1] == whole.operations[1]


# words ---------------------------------------------------------------------------------------------
def test_a_program_in_words() -> None:
    special = Generate("b", 1, (*A, Piece("@a", 0, 1)), 2, "grow", "n", 3, 0.5)
    whole = program(ask("a"), Fill("f", 0, "f", target="a"), Burst("x", (special,)), Flush("g", 0))
    assert lines_of(whole) == [
        "a: worker 0 prime, A[0:100], outputs 1",
        "f: worker 0 fill, 1 of the device pool, then until a is off device, outputs 0",
        "x: together",
        "  b: worker 1 grow, A[0:100] + @a[0:1], outputs 2, namespace n, logprobs from 3, "
        "aborted after 0.5 s",
        "g: worker 0 flush",
    ]

"""Operations that overlap, and events that were published after the next call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tierfuzz.events import KvEvent
from tierfuzz.hashing import page_hashes
from tierfuzz.oracles.grouping import Group, groups_of
from tierfuzz.program import WritePolicy
from tierfuzz.prompts import Piece, tokens_of
from tierfuzz.recording import BatchRecord, Header, OpRecord, Recording

PAGE = 4
DEVICE, HOST = "GPU", "CPU_PINNED"


def request(t: float, stream: str, pages: int, *, ms: float = 100.0, burst: bool = False) -> OpRecord:
    """A prompt of whole pages without outputs."""
    return OpRecord("generate", t, ms=ms, prompt=(Piece(stream, 0, pages * PAGE),), burst=burst)


def chain(stream: str, pages: int) -> tuple[int, ...]:
    """Its blocks."""
    return page_hashes(tokens_of((Piece(stream, 0, pages * PAGE),)), PAGE)


def store(blocks: tuple[int, ...], medium: str = DEVICE) -> list[Any]:
    """A store of blocks, one event each, as a file has them."""
    return [["BlockStored", [h], None, PAGE, PAGE, None, medium] for h in blocks]


def remove(blocks: tuple[int, ...]) -> list[Any]:
    """A removal from the device."""
    return [["BlockRemoved", list(blocks), DEVICE]]


def recording(
    ops: list[OpRecord], batches: list[tuple[float, list[Any]]], policy: WritePolicy = "write_through"
) -> Recording:
    """Batches are published and received at the same times, so that the clocks agree."""
    header = Header(1, "sglang", "0.5.23", policy, PAGE, 64 * PAGE, 128 * PAGE, 8192)
    records = [BatchRecord(t, seq, t, 0, events) for seq, (t, events) in enumerate(batches)]
    return Recording(Path("made.jsonl"), header, ops, records)


def found(groups: list[Group]) -> list[list[KvEvent]]:
    """The events of each group."""
    return [group.events for group in groups]


def typed(*events: list[Any]) -> list[KvEvent]:
    """The same as values."""
    return [event for some in events for event in BatchRecord(0.0, 0, 0.0, 0, some).typed()]


def numbers(ops: list[OpRecord]) -> list[list[int]]:
    """Operations of each group."""
    return [[number for number, _ in group.ops] for group in groups_of(recording(ops, []))]


def test_requests_that_overlap_are_one_group() -> None:
    ops = [
        request(0.0, "a", 1),
        request(0.05, "b", 1, ms=300, burst=True),
        request(0.2, "c", 1, burst=True),
        request(0.34, "d", 1, burst=True),
        request(0.5, "e", 1),
    ]
    assert numbers(ops) == [[0, 1, 2, 3], [4]]


def test_a_flush_is_a_group_of_its_own() -> None:
    assert numbers([request(0.0, "a", 1), OpRecord("flush", 0.05), request(0.06, "b", 1)]) == [[0], [1], [2]]


def test_times_are_rounded_but_not_those_of_bursts() -> None:
    ops = [request(0.0, "a", 1, ms=100.02), request(0.1, "b", 1)]
    assert numbers(ops) == [[0], [1]]
    ops[1] = request(0.1, "b", 1, burst=True)
    assert numbers(ops) == [[0, 1]]


def test_events_belong_to_the_operation_in_which_they_were_published() -> None:
    a, b = chain("a", 2), chain("b", 2)
    ops = [request(0.0, "a", 2), request(1.0, "b", 2)]
    batches = [(0.05, store(a)), (0.06, store(a, HOST)), (1.05, remove(a) + store(b))]
    assert found(groups_of(recording(ops, batches))) == [
        typed(store(a), store(a, HOST)),
        typed(remove(a), store(b)),
    ]


def test_stores_of_the_request_before_and_what_stands_before_them_go_back() -> None:
    a, b, other = chain("a", 2), chain("b", 2), chain("c", 1)
    ops = [request(0.0, "a", 2), request(0.2, "b", 2)]
    batches = [(0.05, store(a)), (0.25, remove(other) + store(a, HOST) + remove(other) + store(b))]
    assert found(groups_of(recording(ops, batches))) == [
        typed(store(a), remove(other), store(a, HOST)),
        typed(remove(other), store(b)),
    ]


def test_a_copy_that_is_owed_goes_back_from_a_request_of_the_same_prompt() -> None:
    a = chain("a", 2)
    ops = [request(0.0, "a", 2), request(0.2, "a", 2)]
    batches = [(0.05, store(a)), (0.25, store(a, HOST))]
    assert found(groups_of(recording(ops, batches))) == [typed(store(a), store(a, HOST)), []]


def test_a_copy_is_owed_once() -> None:
    a = chain("a", 1)
    ops = [request(0.0, "a", 1), request(0.2, "a", 1)]
    batches = [(0.05, store(a)), (0.25, store(a, HOST) + store(a, HOST))]
    assert found(groups_of(recording(ops, batches))) == [
        typed(store(a), store(a, HOST)),
        typed(store(a, HOST)),
    ]


def test_under_selective_a_second_request_makes_the_copy() -> None:
    a = chain("a", 2)
    ops = [request(0.0, "a", 2), request(0.2, "a", 2)]
    batches = [(0.05, store(a)), (0.25, store(a, HOST))]
    made = recording(ops, batches, "write_through_selective")
    assert found(groups_of(made)) == [typed(store(a)), typed(store(a, HOST))]


def test_under_write_back_any_request_may_copy_any_page() -> None:
    a, b = chain("a", 2), chain("b", 2)
    ops = [request(0.0, "a", 2), request(0.2, "b", 2)]
    batches = [(0.05, store(a)), (0.25, store(a, HOST) + remove(a) + store(b))]
    assert found(groups_of(recording(ops, batches, "write_back"))) == [
        typed(store(a)),
        typed(store(a, HOST), remove(a), store(b)),
    ]


def test_pages_that_must_be_inserted_go_back_past_an_empty_window() -> None:
    a = chain("a", 3)
    ops = [request(0.0, "a", 3), request(0.2, "a", 2), request(0.4, "a", 3)]
    batches = [(0.05, store(a[:2])), (0.45, store(a[2:]))]
    assert found(groups_of(recording(ops, batches))) == [typed(store(a)), [], []]


def test_what_stands_before_the_clear_is_of_the_request_before_the_flush() -> None:
    a, b = chain("a", 1), chain("b", 1)
    ops = [request(0.0, "a", 1), request(0.2, "b", 1), OpRecord("flush", 0.4)]
    batches = [(0.05, store(a)), (0.45, [*store(b), ["AllBlocksCleared"]])]
    groups = found(groups_of(recording(ops, batches)))
    assert groups[:2] == [typed(store(a)), typed(store(b))]
    assert len(groups[2]) == 1

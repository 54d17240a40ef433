"""What a recording says, field by field, and the lines that are written for it."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from tierfuzz.errors import FormatError
from tierfuzz.events import AllBlocksCleared, BlockRemoved, BlockStored, Tier
from tierfuzz.observation import TierSplit
from tierfuzz.prompts import Piece
from tierfuzz.recording import Recording, read_recording, windows, write_recording

FOLDER = Path(__file__).parent / "recordings"
SERIES_1 = FOLDER / "sglang-0.5.17-write_back-p16.jsonl.xz"
OVERLAP = FOLDER / "sglang-0.5.17-wt-p16-overlap.jsonl.xz"

FLUSHES = [0, 88, 90, 96, 193, 246, 266, 531, 587]  # operations of SERIES_1

HEADER = {
    "type": "header",
    "format": 1,
    "engine": "sglang",
    "version": "0.5.17",
    "write_policy": "write_back",
    "page_size": 16,
    "device_tokens": 1024,
    "host_tokens": 2064,
    "chunked_prefill_size": 8192,
}
BIG = 2**63 - 1
STORE = ["BlockStored", [-BIG - 1], BIG, 16, 16, None, "GPU"]
REMOVAL = ["BlockRemoved", [BIG, 1], "CPU_PINNED"]


def generate(t: float, **fields: Any) -> dict[str, Any]:
    """One request."""
    return {"type": "op", "op": "generate", "t": t, "ms": 10.0, "prompt": [["A", 0, 17]], **fields}


def flush(t: float) -> dict[str, Any]:
    """One flush."""
    return {"type": "op", "op": "flush", "t": t, "status": 200, "note": ""}


def batch(seq: int, ts: float, *events: Any) -> dict[str, Any]:
    """One batch, received at once; the worker's clock is 1000 s ahead."""
    return {"type": "batch", "t": ts, "seq": seq, "ts": ts + 1000.0, "rank": 0, "events": list(events)}


def write(path: Path, *records: Any) -> Path:
    """A file of these records."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def read(tmp_path: Path, *records: Any) -> Recording:
    """A recording of these records after a header."""
    return read_recording(write(tmp_path / "some.jsonl", HEADER, *records))


# reading -------------------------------------------------------------------------------------------
def test_an_operation_is_read_with_everything_it_says(tmp_path: Path) -> None:
    said = generate(
        1.5,
        max_new_tokens=3,
        extra_key="a",
        logprob_start_len=0,
        output_ids=[7, 8],
        prompt_tokens=17,
        cached_tokens=16,
        cached_tokens_details={"device": 0, "host": 16},
        burst=True,
        abort_t=1.6,
        finish="abort",
        unheard_of="kept out",
    )
    (op,) = read(tmp_path, said).ops
    assert op.prompt == (Piece("A", 0, 17),)
    assert (op.max_new_tokens, op.extra_key, op.logprob_start_len, op.output_ids) == (3, "a", 0, (7, 8))
    assert (op.prompt_tokens, op.cached_tokens) == (17, 16)
    assert op.cached_tokens_details == TierSplit(device=0, host=16)
    assert (op.burst, op.abort_t, op.finish, op.t, op.ms) == (True, 1.6, "abort", 1.5, 10.0)


def test_null_details_are_no_split(tmp_path: Path) -> None:
    (op,) = read(tmp_path, generate(1.0, cached_tokens=0, cached_tokens_details=None)).ops
    assert op.cached_tokens_details is None


def test_events_are_read_in_both_forms_with_all_64_bits(tmp_path: Path) -> None:
    maps = [
        {
            "type": "BlockStored",
            "block_hashes": [-BIG - 1],
            "parent_block_hash": BIG,
            "token_ids": 16,
            "block_size": 16,
            "lora_id": None,
            "medium": "GPU",
        },
        {"type": "BlockRemoved", "block_hashes": [BIG, 1], "medium": "CPU_PINNED"},
        {"type": "AllBlocksCleared"},
    ]
    arrays = [STORE, REMOVAL, ["AllBlocksCleared"]]
    recording = read(tmp_path, batch(1, 0.0, *arrays), batch(2, 0.0, *maps))
    expected = [
        BlockStored((-BIG - 1,), BIG, (), 16, "GPU"),
        BlockRemoved((BIG, 1), "CPU_PINNED"),
        AllBlocksCleared(),
    ]
    assert [one.typed() for one in recording.batches] == [expected, expected]


def test_header_fields_without_a_name_are_kept(tmp_path: Path) -> None:
    header = read_recording(write(tmp_path / "h.jsonl", {**HEADER, "gpu": "H200", "kind": "overlap"})).header
    assert (header.kind, header.extra) == ("overlap", {"gpu": "H200"})


@pytest.mark.parametrize(
    ("name", "ops", "flushes", "batches", "events"),
    [
        ("0.5.17-write_back-p16", 801, 9, 736, 9734),
        ("0.5.17-wt-p16-overlap", 499, 2, 681, 7749),
        ("0.5.23-wb-p16-rust", 397, 3, 481, 1797),
    ],
)
def test_a_recording_has_what_its_table_says(
    name: str, ops: int, flushes: int, batches: int, events: int
) -> None:
    recording = read_recording(FOLDER / f"sglang-{name}.jsonl.xz")
    assert [sum(op.op == kind for op in recording.ops) for kind in ("generate", "flush")] == [ops, flushes]
    assert len(recording.batches) == batches
    assert sum(len(one.events) for one in recording.batches) == events
    first = recording.batches[0].seq
    assert [one.seq for one in recording.batches] == list(range(first, first + batches))


def test_blocks_of_a_coalescing_engine_add_up() -> None:
    recording = read_recording(FOLDER / "sglang-0.5.23-wb-p16-rust.jsonl.xz")
    events = [event for one in recording.batches for event in one.typed()]
    blocks = {
        (kind, tier): sum(len(e.hashes) for e in events if isinstance(e, kind) and e.tier is tier)
        for kind in (BlockStored, BlockRemoved)
        for tier in (Tier.DEVICE, Tier.HOST)
    }
    assert list(blocks.values()) == [3690, 3476, 3532, 3110]


# writing -------------------------------------------------------------------------------------------
def test_lines_are_written_as_the_recorder_wrote_them(tmp_path: Path) -> None:
    def lines(path: Path) -> list[str]:
        with lzma.open(path, "rt") as file:
            return [json.dumps(json.loads(line), sort_keys=True) for line in file]

    path = tmp_path / "copy.jsonl.xz"
    write_recording(path, read_recording(OVERLAP))
    assert lines(path)[0] == lines(OVERLAP)[0]
    assert sorted(lines(path)) == sorted(lines(OVERLAP))


def test_details_are_written_with_both_tiers_of_memory(tmp_path: Path) -> None:
    details = [{"device": 0, "host": 16}, {"device": 0, "host": 0, "storage": 32}, None]
    recording = read(tmp_path, *(generate(t, cached_tokens_details=d) for t, d in enumerate(details)))
    path = tmp_path / "copy.jsonl"
    write_recording(path, recording)
    written = [json.loads(line) for line in path.read_text().splitlines()][1:]
    assert [line["cached_tokens_details"] for line in written] == details


def test_a_flush_without_a_clear_keeps_its_window(tmp_path: Path) -> None:
    recording = read(tmp_path, generate(1.0), flush(2.0), batch(1, 2.001, STORE))
    assert [len(window) for window in windows(recording)] == [0, 1]


def test_every_recorded_flush_begins_with_its_clear() -> None:
    recording = read_recording(SERIES_1)
    cleared = [[isinstance(event, AllBlocksCleared) for _, event in window] for window in windows(recording)]
    assert [at for at, found in enumerate(cleared) if any(found)] == FLUSHES
    assert all(cleared[at][0] for at in FLUSHES)


def test_hashes_beyond_64_bits_are_refused(tmp_path: Path) -> None:
    for field, value in ((1, [2**63]), (1, [-(2**63) - 1]), (2, 2**70), (1, [1.5])):
        event = [*STORE[:field], value, *STORE[field + 1 :]]
        with pytest.raises(FormatError, match="line 2: not a record of a recording"):
            read(tmp_path, batch(1, 0.0, event))

"""Recordings on disk: every file is read, what is no recording is refused with its line, and windows."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from tierfuzz.errors import FormatError
from tierfuzz.events import AllBlocksCleared, BlockRemoved, BlockStored, KvEvent
from tierfuzz.observation import TierSplit
from tierfuzz.prompts import Piece
from tierfuzz.recording import Recording, read_recording, windows, write_recording

RECORDINGS = Path(__file__).parent / "recordings"
NAMES = sorted(path.name for path in RECORDINGS.glob("*.jsonl.xz"))
HEADER: dict[str, Any] = {
    "type": "header",
    "format": 1,
    "engine": "sglang",
    "version": "0.5.17",
    "write_policy": "write_back",
    "page_size": 4,
    "device_tokens": 64,
    "host_tokens": 132,
    "chunked_prefill_size": 128,
}
OP: dict[str, Any] = {
    "type": "op",
    "op": "generate",
    "t": 1.0,
    "status": 200,
    "ms": 3.0,
    "prompt": [["A", 0, 5]],
    "max_new_tokens": 1,
    "output_ids": [7],
    "prompt_tokens": 5,
    "completion_tokens": 1,
    "cached_tokens": 4,
    "cached_tokens_details": {"device": 4, "host": 0},
}
STORED = ["BlockStored", [1], None, 4, 4, None, "GPU"]
CLEARED = ["AllBlocksCleared"]


def batch(seq: int, ts: float, *events: Any, delay: float = 0.5) -> dict[str, Any]:
    """A message that arrives `delay` seconds later by another clock."""
    return {"type": "batch", "t": ts + delay, "seq": seq, "ts": ts, "rank": 0, "events": list(events)}


def flush(t: float) -> dict[str, Any]:
    """A flush of the cache."""
    return {"type": "op", "op": "flush", "t": t, "status": 200}


def lines_of(*records: dict[str, Any]) -> bytes:
    """The records, one a line."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def written(tmp_path: Path, *records: dict[str, Any]) -> Recording:
    """A recording of these records, read back."""
    path = tmp_path / "written.jsonl"
    path.write_bytes(lines_of(*records))
    return read_recording(path)


@pytest.mark.parametrize("name", NAMES)
def test_every_recording_is_read_in_order(name: str) -> None:
    recording = read_recording(RECORDINGS / name)
    version, policy = recording.header.version, recording.header.write_policy
    assert name.startswith(f"sglang-{version}-")
    assert ("wb-" in name or "write_back" in name) == (policy == "write_back")
    assert f"-p{recording.header.page_size}" in name
    assert [op.t for op in recording.ops] == sorted(op.t for op in recording.ops)
    seqs = [found.seq for found in recording.batches]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
    assert len(recording.ops) >= 200


def test_names_of_fields_are_those_of_the_file(tmp_path: Path) -> None:
    removed = {"type": "BlockRemoved", "block_hashes": [2, 3], "medium": "CPU_PINNED"}
    recording = written(tmp_path, HEADER, batch(4, 2.0, STORED, removed), OP, batch(3, 1.0, CLEARED))
    (op,) = recording.ops
    assert (op.prompt, op.output_ids, op.cached_tokens) == ((Piece("A", 0, 5),), (7,), 4)
    assert op.cached_tokens_details == TierSplit(device=4)
    assert [found.seq for found in recording.batches] == [3, 4]
    assert recording.batches[1].typed() == [
        BlockStored((1,), None, (), 4, "GPU"),
        BlockRemoved((2, 3), "CPU_PINNED"),
    ]
    assert recording.batches[0].typed() == [AllBlocksCleared()]


def test_compressed_and_plain_files_are_the_same(tmp_path: Path) -> None:
    data = lines_of(HEADER, OP, batch(0, 1.0, STORED))
    plain, packed = tmp_path / "a.jsonl", tmp_path / "a.jsonl.xz"
    plain.write_bytes(data.replace(b"\n", b"\n\n"))  # empty lines are passed over
    packed.write_bytes(lzma.compress(data))
    one, other = read_recording(plain), read_recording(packed)
    assert (one.header, one.ops, one.batches) == (other.header, other.ops, other.batches)


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.xz"])
def test_a_recording_survives_writing(tmp_path: Path, suffix: str) -> None:
    recording = read_recording(RECORDINGS / "sglang-0.5.23-wt-p16-overlap-rust.jsonl.xz")
    path = tmp_path / f"again{suffix}"
    write_recording(path, recording)
    again = read_recording(path)
    assert (again.header, again.ops, again.batches) == (recording.header, recording.ops, recording.batches)


GARBAGE: tuple[tuple[bytes, str], ...] = (
    (b"", r"empty file; expected a recording that starts with its header"),
    (b"\n \n", r"empty file"),
    (b"{\n", r"line 1: not a record of a recording"),
    (b"[]\n", r"line 1: not a record of a recording"),
    (b"\xff\xfe\n", r"line 1: not a record of a recording"),
    (lines_of(OP), r"line 1: expected the header of a recording"),
    (lines_of({**HEADER, "format": 2}), r"recording format 2; expected format 1"),
    (lines_of({**HEADER, "format": None}), r"recording format None; expected format 1"),
    (lines_of({**HEADER, "page_size": "4"}), r"line 1: not a record of a recording .*page_size"),
    (lines_of({**HEADER, "write_policy": "write_once"}), r"line 1: .*write_policy"),
    (lines_of(HEADER) + b"{\n", r"line 2: not a record"),
    (lines_of(HEADER, OP) + b"\n\nnothing\n", r"line 5: not a record"),
    (lines_of(HEADER, OP, {**OP, "op": "dance"}), r"line 3: not a record .*dance"),
    (lines_of(HEADER, {**OP, "prompt": [["A", 3, 1]]}), r"line 2: not a record .*0 <= start <= stop"),
    (lines_of(HEADER, {"type": "dance"}), r"line 2: not a record .*dance"),
    (lines_of(HEADER, OP, batch(0, 0.0, ["BlockMoved"])), r"line 3: not a record .*BlockMoved"),
    (lines_of(HEADER, batch(0, 0.0, [])), r"line 2: not a record"),
    (lines_of(HEADER, batch(0, 0.0, STORED[:3])), r"line 2: not a record"),
    (lines_of(HEADER, batch(0, 0.0, {"type": "BlockRemoved"})), r"line 2: not a record"),
    (lines_of(HEADER) + b"[" * 100_000 + b"\n", r"line 2: not a record"),
)


@pytest.mark.parametrize(("data", "said"), GARBAGE, ids=range(len(GARBAGE)))
def test_what_is_no_recording_is_refused_with_its_line(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "garbage.jsonl"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=said) as caught:
        read_recording(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("data", [b"no xz at all", lzma.compress(lines_of(HEADER, OP))[:-20]])
def test_what_is_no_xz_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "broken.jsonl.xz"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"cannot be read \(.*\); expected \.jsonl or \.jsonl\.xz"):
        read_recording(path)


def test_a_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"absent\.jsonl: cannot be read"):
        read_recording(tmp_path / "absent.jsonl")


def typed(found: list[tuple[int, KvEvent]]) -> list[tuple[int, str]]:
    """The index of the batch and the kind of each event of a window."""
    return [(index, type(event).__name__) for index, event in found]


def test_an_event_belongs_to_the_operation_that_was_called_last(tmp_path: Path) -> None:
    recording = written(
        tmp_path,
        HEADER,
        *({**OP, "t": at} for at in (1.0, 2.0, 3.0)),
        batch(0, 10.5, STORED),  # the fastest message: the worker's clock is 10 s ahead
        batch(1, 11.003, STORED, CLEARED, delay=-9.5),
        batch(2, 12.003, STORED, delay=-10.0),  # just after the call of 2.0: still of the one before
        batch(3, 12.005, STORED, delay=-9.9),
    )
    assert [typed(found) for found in windows(recording)] == [
        [(0, "BlockStored"), (1, "BlockStored"), (1, "AllBlocksCleared"), (2, "BlockStored")],
        [(3, "BlockStored")],
        [],
    ]


def test_what_stands_before_a_clear_belongs_to_the_operation_before_the_flush(tmp_path: Path) -> None:
    recording = written(
        tmp_path, HEADER, OP, flush(2.0), batch(0, 2.0005, STORED, CLEARED, STORED, delay=0.0)
    )
    assert [typed(found) for found in windows(recording)] == [
        [(0, "BlockStored")],
        [(0, "AllBlocksCleared"), (0, "BlockStored")],
    ]


def test_windows_of_nothing_are_empty(tmp_path: Path) -> None:
    assert windows(written(tmp_path, HEADER, OP, flush(2.0))) == [[], []]
    assert windows(written(tmp_path, HEADER, batch(0, 1.0, STORED))) == []


@pytest.mark.parametrize("name", [name for name in NAMES if "overlap" in name or "h528" in name])
def test_windows_share_out_every_event_once_and_in_order(name: str) -> None:
    recording = read_recording(RECORDINGS / name)
    found = [pair for window in windows(recording) for pair in window]
    sent = [(index, event) for index, one in enumerate(recording.batches) for event in one.typed()]
    assert found == sent

"""Streams on disk: written and read back, versioned, and what is refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from short import SIZE, short

from tierfuzz.errors import FormatError
from tierfuzz.events import BlockStored
from tierfuzz.hashing import page_hashes
from tierfuzz.orders.files import is_stream, load_stream, save_stream
from tierfuzz.orders.pages import Pages
from tierfuzz.orders.stream import Sent, Stream
from tierfuzz.recording import read_recording, write_recording

HEADER = '{"type":"stream","format":1,"policy":"write_back","page_size":4}'


def test_a_stream_is_read_as_it_was_written(tmp_path: Path) -> None:
    entries = short("Sg1-3 Rg3-1 C X Sg1").entries
    named = Sent(1, 2, (BlockStored((7,), None, (1, 2, 3, 4), SIZE, "GPU", cache_salt="a"),), ("tenant-a",))
    stream = Stream(
        "write_back", (*entries, named), SIZE, "sglang-0.5.23", True, frozenset({7, -9}), "a note"
    )
    save_stream(tmp_path / "s.jsonl", stream)
    assert load_stream(tmp_path / "s.jsonl") == stream
    assert len((tmp_path / "s.jsonl").read_text().splitlines()) == 1 + len(stream.entries)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "empty file; expected a stream that starts with its header"),
        (["no json"], "line 1: expected the header of a stream or of a recording"),
        (['{"type":"batch"}'], "line 1: expected the header of a stream or of a recording"),
        ([HEADER.replace(":1,", ":2,")], "stream format 2; expected format 1"),
        ([HEADER.replace("write_back", "write_on")], "line 1: not the header of a stream"),
        (
            [HEADER.replace("4}", '4,"profile":"x"}')],
            "line 1: not the header of a stream (unknown profile 'x'",
        ),
        ([HEADER, '{"type":"batch"}'], "line 2: not a line of a stream"),
        (
            [HEADER, '{"type":"batch","worker":0,"rank":0,"events":[{"type":"BlockMoved"}]}'],
            "line 2: not a line of a stream (event of type 'BlockMoved'",
        ),
        (
            [
                HEADER,
                '{"type":"batch","worker":0,"rank":0,"events":[{"type":"AllBlocksCleared"}],"namespaces":["a","b"]}',
            ],
            "2 namespaces for 1 events",
        ),
    ],
)
def test_what_is_no_stream_is_refused(tmp_path: Path, lines: list[str], said: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(FormatError) as refused:
        load_stream(path)
    assert str(path) in str(refused.value)
    assert said in str(refused.value)


def test_a_recording_is_read_as_a_stream(recordings: Path, tmp_path: Path) -> None:
    recording = read_recording(recordings / "sglang-0.5.17-write_back-p64.jsonl.xz")
    plain = tmp_path / "recording.jsonl"
    write_recording(plain, recording)
    stream = load_stream(plain)
    assert stream.entries == load_stream(recording.path).entries
    assert (stream.policy, stream.page_size, stream.profile) == ("write_back", 64, "sglang-0.5.17")
    assert len(stream.entries) == len(recording.batches)
    assert [len(entry.events) for entry in stream.entries if isinstance(entry, Sent)] == [
        len(events) for events in recording.typed
    ]


def test_recorded_pages_get_tokens_that_their_hashes_follow_from(recordings: Path) -> None:
    stream = load_stream(recordings / "sglang-0.5.17-write_back-p64.jsonl.xz")
    pages = Pages(stream)
    deepest = max(pages.blocks, key=lambda block: len(pages.chain(block)))
    probe = pages.probe_to(deepest)
    assert probe is not None
    assert len(probe.blocks) > 20
    assert page_hashes(probe.tokens, 64) == probe.blocks


def test_streams_and_recordings_are_told_from_programs(recordings: Path, tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert is_stream(recordings / "sglang-0.5.17-write_back-p64.jsonl.xz")
    path.write_text(HEADER)
    assert is_stream(path)
    path.write_text('{"type": "header", "format": 1}')
    assert is_stream(path)
    path.write_text('{"format":1,"fleet":{},"operations":[]}')
    assert not is_stream(path)
    path.write_bytes(msgspec.json.encode({"type": "head"}))
    assert not is_stream(path)

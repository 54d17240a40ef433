"""Recorded payloads are read without faults and written byte for byte, and their hashes are the chain."""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tierfuzz.codec import Wire, decode_batch, encode_batch
from tierfuzz.events import AllBlocksCleared, Batch, BlockRemoved, BlockStored, Tier
from tierfuzz.hashing import extend_chain, signed64
from tierfuzz.recording import read_recording

RECORDINGS = Path(__file__).parent / "recordings"
OLD, NEW = "raw-payloads.json", "raw-payloads-0.5.23.json"
RECORDED: tuple[tuple[str, str, Wire], ...] = (
    (OLD, "write_through-p16", "array"),
    (OLD, "write_back-p16", "array"),
    (NEW, "wt-p16-rust", "map"),
    (NEW, "wb-p16-rust", "map"),
)
VERSION = {OLD: "0.5.17", NEW: "0.5.23"}


@cache
def messages(file: str, name: str) -> tuple[tuple[int, bytes], ...]:
    """The sequence number and payload of each recorded message."""
    recorded = json.loads((RECORDINGS / file).read_text())[name]
    return tuple((int(m["seq_hex"], 16), base64.b64decode(m["payload_b64"])) for m in recorded)


def read(*events: Any) -> Batch:
    """What is read of a payload with these events."""
    return decode_batch(0, msgspec.msgpack.encode([0.0, events, 0]))


def tiers(batch: Batch) -> list[Tier]:
    """The tiers of stores and removals."""
    return [event.tier for event in batch.events if not isinstance(event, AllBlocksCleared)]


@pytest.mark.parametrize(("file", "name", "wire"), RECORDED)
def test_recorded_payloads_are_read_without_faults_and_written_the_same(
    file: str, name: str, wire: Wire
) -> None:
    assert len(messages(file, name)) >= 12
    for seq, payload in messages(file, name):
        batch = decode_batch(seq, payload)
        assert (batch.seq, batch.faults, batch.received, batch.replayed) == (seq, (), 0.0, False)
        assert batch.events
        assert encode_batch(batch, wire) == payload


@pytest.mark.parametrize(("file", "name"), [(file, name) for file, name, _ in RECORDED])
def test_recorded_hashes_are_the_chain_over_the_recorded_tokens(file: str, name: str) -> None:
    digests: dict[int | None, bytes] = {None: b""}
    for seq, payload in messages(file, name):
        for event in decode_batch(seq, payload).events:
            if isinstance(event, BlockStored):
                check_chain(event, digests)
    assert len(digests) > 40


def check_chain(event: BlockStored, digests: dict[int | None, bytes]) -> None:
    """Recompute the blocks of a store; a parent that was never stored is a KeyError."""
    digest = digests[event.parent]
    for at, block in enumerate(event.hashes):
        page = event.tokens[at * event.block_size : (at + 1) * event.block_size]
        digest = extend_chain(digest, page)
        assert signed64(digest) == block
        digests[block] = digest


@pytest.mark.parametrize(("file", "name"), [(file, name) for file, name, _ in RECORDED])
def test_a_payload_says_what_the_recording_has_under_its_seq(file: str, name: str) -> None:
    recording = read_recording(RECORDINGS / f"sglang-{VERSION[file]}-{name}.jsonl.xz")
    recorded = {batch.seq: batch for batch in recording.batches}
    for seq, payload in messages(file, name):
        batch, same = decode_batch(seq, payload), recorded[seq]
        assert (batch.ts, batch.rank) == (same.ts, same.rank)
        assert [without_tokens(event) for event in batch.events] == same.typed()


def without_tokens(event: object) -> object:
    """Recordings have the number of tokens only."""
    return msgspec.structs.replace(event, tokens=()) if isinstance(event, BlockStored) else event


@pytest.mark.parametrize(
    ("medium", "tier"),
    [
        ("GPU", Tier.DEVICE),
        ("CPU", Tier.HOST),
        ("CPU_PINNED", Tier.HOST),
        ("CPU_TIER1", Tier.HOST),
        ("CPU_TIER2", Tier.HOST),
        ("DISK", Tier.STORAGE),
        ("STORAGE", Tier.STORAGE),
        ("EXTERNAL", Tier.EXTERNAL),
    ],
)
@pytest.mark.parametrize("wire", ["array", "map"])
def test_every_spelling_of_a_medium_has_its_tier(medium: str, tier: Tier, wire: Wire) -> None:
    sent = (BlockStored((1,), None, (7,), 1, medium), BlockRemoved((1,), medium))
    batch = decode_batch(0, encode_batch(Batch(0, 1.5, 3, sent), wire))
    assert batch == Batch(0, 1.5, 3, sent)
    assert tiers(batch) == [tier, tier]


@pytest.mark.parametrize("medium", ["gpu", "PINNED_RAM", "", "CPU_TIER3"])
def test_an_unknown_medium_is_kept_and_counted(medium: str) -> None:
    batch = read(["BlockRemoved", [1], medium])
    assert batch.events == (BlockRemoved((1,), medium),)
    assert tiers(batch) == [Tier.UNKNOWN]
    assert [fault.slug for fault in batch.faults] == ["unknown-medium"]


def test_a_missing_medium_stands_for_the_device_and_is_counted() -> None:
    stored = ["BlockStored", [1], None, [7], 1, None]
    batch = read(["BlockRemoved", [1]], stored, {"type": "BlockRemoved", "block_hashes": [1]})
    assert tiers(batch) == [Tier.DEVICE] * 3
    assert [fault.slug for fault in batch.faults] == ["missing-medium"] * 3


def test_hashes_may_be_unsigned_or_the_digest_itself() -> None:
    digest = b"\xff" * 7 + b"\xfe" + b"the rest"
    batch = read(["BlockStored", [2**64 - 1, digest], 2**63, [1, 2], 1, None, "GPU"])
    assert batch.events == (BlockStored((-1, -2), -(2**63), (1, 2), 1, "GPU"),)
    assert batch.faults == ()


def test_the_fields_of_a_newer_version_are_kept_or_passed_over() -> None:
    newer = BlockStored((1,), None, (7,), 1, "GPU", "adapter", "salt", "session", "name")
    assert decode_batch(0, encode_batch(Batch(0, 0.0, 0, (newer,)), "map")).events == (newer,)
    longer = ["BlockStored", [1], None, [7], 1, None, "GPU", "one", 2, None]
    batch = read(longer, {"type": "BlockRemoved", "block_hashes": [1], "medium": "CPU", "new": [1]})
    assert batch.events == (BlockStored((1,), None, (7,), 1, "GPU"), BlockRemoved((1,), "CPU"))
    assert batch.faults == ()


@pytest.mark.parametrize("body", [[1.0, []], [1.0, [], None], [1.0, [], 0], [1, [], 0]])
def test_a_payload_may_leave_its_rank_out(body: list[Any]) -> None:
    batch = decode_batch(4, msgspec.msgpack.encode(body), 2.5, True)
    assert batch == Batch(4, 1.0, 0, (), (), 2.5, True)

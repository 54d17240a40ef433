"""Conformance: every sequential recording agrees with the model, and a changed recording does not."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tierfuzz.conform import conform_file, find_recordings, model_predicts
from tierfuzz.errors import UsageError
from tierfuzz.model.replay import OpResult
from tierfuzz.observation import TierSplit
from tierfuzz.recording import Recording

RECORDINGS = Path(__file__).parent / "recordings"
SEQUENTIAL = sorted(path.name for path in RECORDINGS.glob("*.jsonl.xz") if "overlap" not in path.name)
Lines = list[dict[str, Any]]


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_a_recording_agrees_in_every_result_window_and_boundary(name: str) -> None:
    row = conform_file(RECORDINGS / name)
    assert row.ok, row.differences
    assert (row.file, row.kind, row.differences) == (name, "sequential", [])
    assert row.results_ok == row.results >= 290
    assert row.windows_ok == row.windows >= row.results
    assert row.boundaries_ok + row.boundaries_late == row.boundaries > 0
    assert row.regrouped == 0


def test_there_is_a_recording_of_every_kind() -> None:
    kinds = {tuple(name.split("-")[1:3]) for name in SEQUENTIAL}
    assert len(SEQUENTIAL) >= 25
    assert {version for version, _ in kinds} == {"0.5.17", "0.5.23"}


@pytest.fixture(scope="module")
def lines() -> Lines:
    """A short recording as its lines."""
    with lzma.open(RECORDINGS / "sglang-0.5.17-wt-p16-h528.jsonl.xz") as file:
        return [json.loads(line) for line in file]


def write(tmp_path: Path, lines: Lines) -> Path:
    """A recording of these lines."""
    path = tmp_path / "changed.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def copied(lines: Lines) -> Lines:
    """Lines that may be changed."""
    return json.loads(json.dumps(lines))  # type: ignore[no-any-return]


def test_the_lines_agree_before_they_are_changed(tmp_path: Path, lines: Lines) -> None:
    assert conform_file(write(tmp_path, lines)).ok


def test_one_changed_result_is_named(tmp_path: Path, lines: Lines) -> None:
    changed = copied(lines)
    ops = sorted((line for line in changed if line["type"] == "op"), key=lambda op: float(op["t"]))
    number = next(at for at, op in enumerate(ops) if at > 50 and op.get("cached_tokens"))
    seen = ops[number]["cached_tokens"]
    ops[number]["cached_tokens"] = seen - 16
    row = conform_file(write(tmp_path, changed))
    assert not row.ok
    assert (row.results_ok, row.windows_ok) == (row.results - 1, row.windows)
    (said,) = row.differences
    assert said.startswith(f"op {number}: expected cached {seen} ")
    assert f"seen {seen - 16} " in said


def swap_hash(events: list[Any]) -> None:
    """The first store names another block."""
    events[0][1] = [events[0][1][0] ^ 1, *events[0][1][1:]]


def rename_medium(events: list[Any]) -> None:
    """The first store is in another tier."""
    events[0][6] = "CPU_PINNED" if events[0][6] == "GPU" else "GPU"


def change_parent(events: list[Any]) -> None:
    """The first store follows a block that nobody stored."""
    events[0][2] = 12345


def lose_event(events: list[Any]) -> None:
    """The first event is lost."""
    del events[0]


@pytest.mark.parametrize("change", [swap_hash, rename_medium, change_parent, lose_event])
def test_one_changed_event_is_named(
    tmp_path: Path, lines: Lines, change: Callable[[list[Any]], None]
) -> None:
    changed = copied(lines)
    batch = next(line for line in changed[len(changed) // 2 :] if is_long_store(line))
    number = operation_of(changed, batch)
    change(batch["events"])
    row = conform_file(write(tmp_path, changed))
    assert not row.ok
    assert row.results_ok == row.results
    assert row.windows_ok < row.windows
    assert row.differences[0].startswith(f"op {number}: event ")


def is_long_store(line: dict[str, Any]) -> bool:
    """A batch of several events that begins with a store."""
    return line["type"] == "batch" and len(line["events"]) > 2 and line["events"][0][0] == "BlockStored"


def operation_of(lines: Lines, batch: dict[str, Any]) -> int:
    """The operation that was called last before the batch arrived."""
    starts: list[float] = sorted(line["t"] for line in lines if line["type"] == "op")
    return sum(1 for start in starts if start < batch["t"]) - 1


def test_a_lost_batch_is_noticed(tmp_path: Path, lines: Lines) -> None:
    changed = copied(lines)
    changed.remove(next(line for line in changed[len(changed) // 2 :] if is_long_store(line)))
    assert not conform_file(write(tmp_path, changed)).ok


def test_another_profile_disagrees() -> None:
    row = conform_file(RECORDINGS / "sglang-0.5.17-write_back-p16.jsonl.xz", "default")
    assert not row.ok
    assert 1 <= len(row.differences) <= 5


def test_another_prediction_is_compared_instead() -> None:
    def too_many(recording: Recording, profile: str | None) -> list[OpResult]:
        predicted = model_predicts(recording, profile)
        return [*predicted[:-1], OpResult(99, TierSplit(device=99), predicted[-1].batches)]

    row = conform_file(RECORDINGS / "sglang-0.5.23-sel-p16-h528-rust.jsonl.xz", predict=too_many)
    assert (row.ok, row.results_ok) == (False, row.results - 1)


def test_recordings_are_found_in_folders_and_as_files(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl.xz", "notes.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in find_recordings([tmp_path])] == ["a.jsonl.xz", "b.jsonl"]
    assert find_recordings([tmp_path / "notes.txt"]) == [tmp_path / "notes.txt"]


def test_no_recordings_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent does not exist; expected a recording"):
        find_recordings([tmp_path / "absent"])
    with pytest.raises(UsageError, match=r"no recordings in .*; expected \.jsonl or \.jsonl\.xz files"):
        find_recordings([tmp_path])

"""tierfuzz orders, and tierfuzz shrink of a stream, as a person calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tierfuzz.cli import main
from tierfuzz.orders.causality import discipline_of
from tierfuzz.orders.files import load_stream, save_stream
from tierfuzz.orders.play import Draw, played
from tierfuzz.program import FleetConfig, Program, dump_program
from tierfuzz.recording import read_recording, write_recording
from tierfuzz.strategies.orders import ONE_WORKER

THROUGH = discipline_of("write_through")
ACTS = ["insert", "insert", "back-up", "back-up", "evict-device", "insert", "load-back", "clear"]


def call(*arguments: object) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """A legal stream on which the tier-blind tree is wrong."""
    path = tmp_path / "stream.jsonl"
    draws = [Draw(act, pick=1, pages=2) for act in ACTS]
    save_stream(path, played(THROUGH, ONE_WORKER, draws))
    return path


# tierfuzz shrink -----------------------------------------------------------------------------------
def test_a_stream_shrinks_and_its_story_is_told(stream: Path) -> None:
    done = call("shrink", stream, "--consumer", "tier-blind")
    assert done.exit_code == 1, done.output
    assert "tier-blind answers less than is held after 3 events" in done.output
    assert "<- wrong" in done.output
    assert "legal in write_through of default" in done.output
    assert "the consumer is wrong" in done.output
    small = stream.with_name("stream-min.jsonl")
    assert len(load_stream(small).entries) == 3
    again = call("shrink", small, "--consumer", "tier-blind", "--out", stream.with_name("again.jsonl"))
    assert again.exit_code == 1
    assert load_stream(stream.with_name("again.jsonl")) == load_stream(small)


def test_a_right_consumer_exits_0_and_says_which_reading_it_follows(stream: Path) -> None:
    done = call("shrink", stream, "--consumer", "reference")
    assert done.exit_code == 0
    assert done.output.startswith("reference: nothing wrong in ")
    assert "it follows counts and sets" in done.output
    assert [path.name for path in stream.parent.iterdir()] == ["stream.jsonl"]


def test_json_says_the_same(stream: Path) -> None:
    told = json.loads(call("shrink", stream, "--consumer", "tier-blind", "--json").stdout)
    assert (told["kind"], told["events"], told["minimal"]) == ("forgets", 3, True)
    assert told["rows"][-1]["answered"] == {"device": 0, "host": 0}
    silent = json.loads(call("shrink", stream, "--consumer", "reference", "--json").stdout)
    assert (silent["kind"], silent["follows"]) == ("", ["counts", "sets"])


def test_the_order_can_be_held_against_another_policy(stream: Path) -> None:
    done = call("shrink", stream, "--consumer", "tier-blind", "--policy", "write_back")
    assert done.exit_code == 1
    assert "illegal in write_back of default" in done.output
    assert "No healthy engine sends this order (no engine is known for it)" in done.output


def test_a_recording_can_be_shrunk(recordings: Path, tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    write_recording(path, read_recording(recordings / "sglang-0.5.23-sel-p16-h528-rust.jsonl.xz"))
    done = call("shrink", path, "--consumer", "tier-blind")
    assert done.exit_code == 1
    assert len(load_stream(tmp_path / "recording-min.jsonl").entries) == 3


def test_wrong_usage_is_said(stream: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.json"
    program.write_bytes(dump_program(Program(FleetConfig(), ())))
    for arguments, said in (
        ((stream,), "is an event stream; name who is wrong on it with --consumer"),
        ((stream, "--consumer", "x"), "unknown consumer 'x'"),
        ((stream, "--consumer", "reference", "--plant", "x"), "unknown fault 'x'"),
        ((stream, "--consumer", "reference", "--plant", "no-backup"), "wraps nothing of a consumer"),
        ((program, "--consumer", "reference"), "expected the header of a stream or of a recording"),
    ):
        done = call("shrink", *arguments)
        assert done.exit_code == 2
        assert said in done.stderr


# tierfuzz orders -----------------------------------------------------------------------------------
def test_orders_finds_shrinks_and_keeps_what_is_wrong(tmp_path: Path) -> None:
    done = call(
        "orders",
        "--consumer",
        "tier-blind",
        "--policy",
        "write_through",
        "--max-examples",
        40,
        "--out",
        tmp_path,
    )
    assert done.exit_code == 1, done.output
    assert done.output.startswith("write_through")
    paths = sorted(tmp_path.iterdir())
    assert paths
    assert all(len(load_stream(path).entries) == 3 for path in paths)
    assert f"again: tierfuzz shrink {paths[0]} --consumer tier-blind" in done.output
    assert call("shrink", paths[0], "--consumer", "tier-blind").exit_code == 1


def test_orders_is_silent_on_the_reference(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = call("orders", "--consumer", "reference", "--max-examples", 5, "--family", "all", "--out", out)
    assert done.exit_code == 0, done.output
    assert done.output.count("none wrong") == 3 * 5
    assert "illegal (child-first)" in done.output
    assert not out.exists()


def test_orders_as_json(tmp_path: Path) -> None:
    done = call("orders", "--consumer", "tier-blind", "--max-examples", 20, "--out", tmp_path, "--json")
    runs = json.loads(done.stdout)
    assert [run["policy"] for run in runs] == ["write_through", "write_back", "write_through_selective"]
    assert all(run["wrong"]["forgets"] and run["minimal"] for run in runs)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--consumer", "x"], "unknown consumer 'x'"),
        (["--consumer", "reference", "--family", "x"], "--family x: expected all or some of: child-first"),
        (["--consumer", "reference", "--max-examples", "0"], "--max-examples"),
        ([], "--consumer"),
    ],
)
def test_orders_refuses_what_it_does_not_know(options: list[str], said: str) -> None:
    done = call("orders", *options)
    assert done.exit_code == 2
    assert said in done.stderr

"""The command line, as a person uses it: a process, its output, its exit code."""

from __future__ import annotations

import json
import lzma
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tierfuzz.clock import SYSTEM_CLOCK
from tierfuzz.journal import load_journal
from tierfuzz.program import load_program

JOURNAL = "out/journal-write_through.jsonl"
SHORT = ["--max-examples", "3", "--steps", "20", "--policy", "write_through"]


def tierfuzz(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in `cwd`."""
    return subprocess.run(
        [sys.executable, "-m", "tierfuzz", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_run_that_holds_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    done = tierfuzz("run", *SHORT, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Every verdict held." in done.stdout
    assert "probe-host-only" in done.stdout
    assert not list(tmp_path.iterdir())


def test_a_planted_fault_exits_1_and_leaves_a_program_that_fails_again(tmp_path: Path) -> None:
    done = tierfuzz("run", *SHORT, "--plant", "removal-twice", cwd=tmp_path)
    assert done.returncode == 1
    assert "unmatched-removal" in done.stdout
    out = tmp_path / "tierfuzz-out"
    first = out / "failure-1-write_through.json"
    assert load_program(first).operations
    again = tierfuzz("replay", str(first), "--times", "2", cwd=tmp_path)
    assert again.returncode == 1
    assert "FAILED 2 of 2: unmatched-removal" in again.stdout
    journal = tierfuzz("replay", str(out / "journal-write_through.jsonl"), "--times", "1", cwd=tmp_path)
    assert journal.returncode in (0, 1)
    fixed = tierfuzz("replay", str(first.with_suffix("")), "--without-plants", "--times", "1", cwd=tmp_path)
    assert (fixed.returncode, fixed.stdout) == (0, "FIXED: 0 of 1 runs violated an oracle\n")


def test_json_is_one_object_and_nothing_else(tmp_path: Path) -> None:
    done = tierfuzz("run", *SHORT, "--json", cwd=tmp_path)
    body = json.loads(done.stdout)
    assert body["exit_code"] == done.returncode == 0
    assert body["policies"][0]["reach"]["probe-host-only"] > 0


def test_a_run_that_reaches_nothing_is_vacuous(tmp_path: Path) -> None:
    short = ("--max-examples", "1", "--steps", "2", "--policy", "write_back")
    done = tierfuzz("run", *short, "--host-ratio", "0.5", cwd=tmp_path)
    assert done.returncode == 4
    assert "Vacuous" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "--engine", "warp"), "unknown engine 'warp'; expected one of: sglang, sglang-cpu, sim"),
        (("run", "--plant", "nothing"), "unknown fault 'nothing'; expected file.py:Class or one of"),
        (("run", "--plant", "nowhere.py:X"), "does not exist"),
        (("run", "--device-tokens", "100"), "no multiple of --page-size 16"),
        (("conform", "nowhere"), "nowhere does not exist"),
    ],
)
def test_bad_input_exits_2_with_one_clear_message(
    arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = tierfuzz(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_fault_of_the_user_s_own_file_can_be_planted(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from tierfuzz.model.faults import Fault\n"
        "class Silent(Fault):\n"
        "    def publish(self, engine, inner):\n"
        "        engine.cache.outbox.take()\n"
    )
    done = tierfuzz("run", *SHORT, "--plant", "mine.py:Silent", cwd=tmp_path)
    assert done.returncode == 1
    assert "no-backup" in done.stdout or "ledger-accounting" in done.stdout


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A run that only Ctrl-C ends, with its temporary files in `tmp_path`; gone when the test is."""
    (tmp_path / "tmp").mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "tierfuzz", "run", "--max-examples", "5000", "--json", "--out", "out"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
    ) as run:
        try:
            yield run
        finally:
            run.kill()  # its workers end with it


def wait_for_operations(journal: Path) -> None:
    """Until a journal has some operations; TimeoutError after a minute."""
    for _ in range(1200):
        if journal.exists() and journal.read_bytes().count(b'"operation"') >= 5:
            return
        SYSTEM_CLOCK.sleep(0.05)
    raise TimeoutError(f"no operations in {journal}")


def test_ctrl_c_ends_with_a_summary_and_no_process_left(
    endless: subprocess.Popen[str], tmp_path: Path
) -> None:
    wait_for_operations(tmp_path / JOURNAL)
    children = psutil.Process(endless.pid).children(recursive=True)
    assert len(children) >= 2
    endless.send_signal(signal.SIGINT)
    output, _ = endless.communicate(timeout=60)
    assert endless.returncode == 130
    assert json.loads(output)["interrupted"] is True
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive
    assert load_journal(tmp_path / JOURNAL).operations
    assert not list((tmp_path / "tmp").iterdir())


def test_a_killed_run_leaves_a_journal_and_no_process(endless: subprocess.Popen[str], tmp_path: Path) -> None:
    wait_for_operations(tmp_path / JOURNAL)
    children = psutil.Process(endless.pid).children(recursive=True)
    endless.kill()
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive
    assert load_journal(tmp_path / JOURNAL).operations


def test_lists_name_what_there_is(tmp_path: Path) -> None:
    assert "host-miss" in tierfuzz("oracles", cwd=tmp_path).stdout
    assert "host-copy-forgotten" in tierfuzz("faults", cwd=tmp_path).stdout
    assert "tierfuzz, version" in tierfuzz("--version", cwd=tmp_path).stdout


def test_conform_prints_a_row_a_file_and_exits_1_on_a_difference(tmp_path: Path, recordings: Path) -> None:
    source = recordings / "sglang-0.5.17-write_back-p16.jsonl.xz"
    done = tierfuzz("conform", str(source), cwd=tmp_path)
    assert done.returncode == 0
    assert "results 801/801, windows 810/810, boundaries 736/736" in done.stdout
    lines = lzma.decompress(source.read_bytes()).split(b"\n")
    at = next(i for i, line in enumerate(lines) if b'"cached_tokens":256' in line)
    lines[at] = lines[at].replace(b'"cached_tokens":256', b'"cached_tokens":240')
    changed = tmp_path / "changed.jsonl"
    changed.write_bytes(b"\n".join(lines))
    done = tierfuzz("conform", "--json", str(changed), cwd=tmp_path)
    assert done.returncode == 1
    (row,) = json.loads(done.stdout)
    assert row["results_ok"] == 800
    assert row["differences"][0].startswith("op ")

"""The files of a hand-over, from a run made by hand, against golden ones.

After a change that is meant, write them anew and read the difference:

    uv run python tests/report/handover/test_handover_files.py
"""

from __future__ import annotations

import re
import stat
import sys
from pathlib import Path

import pytest
from handover_story import EVIDENCE, FLEET, MISS, PROGRAM, VERDICTS
from msgspec.structs import replace

from tierfuzz.events import Batch
from tierfuzz.evidence import Evidence
from tierfuzz.program import FleetConfig, Flush, Generate, Program, Restart, load_program
from tierfuzz.report.handover.readme import readme_text
from tierfuzz.report.handover.short import MOST_LINES, short_text
from tierfuzz.report.handover.timeline import timeline_text
from tierfuzz.report.handover.writer import handover_files, write_handover
from tierfuzz.runevents import BatchesSeen, OperationDone, OperationStarted

GOLDEN = Path(__file__).parent / "golden"
FILES = handover_files(PROGRAM, VERDICTS, EVIDENCE)
NAMES = sorted(FILES)
APPROVED = [name for name in NAMES if name != "program.json"]  # which is read back below


def scrubbed(text: str) -> str:
    """Without what belongs to other pages: the flags of the simulated worker, the machinery of the script."""
    text = re.sub(r"(-m tierfuzz\.sim) .*", r"\1 FLAGS", text)
    return text.partition("\n# -----")[0]


@pytest.mark.parametrize("name", APPROVED)
def test_a_file_is_as_it_was_read_and_approved(name: str) -> None:
    assert scrubbed(FILES[name]) == (GOLDEN / f"{name}.golden").read_text()


def test_no_golden_file_is_left_over() -> None:
    assert sorted(path.name for path in GOLDEN.iterdir()) == [f"{name}.golden" for name in APPROVED]


def test_the_launch_command_has_the_ports_that_the_scripts_use_and_the_plant() -> None:
    (command,) = [line for line in FILES["launch.txt"].splitlines() if line.startswith("python ")]
    assert "--port 30010 " in command
    assert "tcp://*:30011" in command
    assert command.endswith("--sim-plant host-copy-forgotten")
    assert "http://127.0.0.1:30010" in FILES["repro.py"]
    assert "http://127.0.0.1:30010" in FILES["curl.sh"]


def test_what_knows_no_ranks_is_left_out_for_workers_that_have_some() -> None:
    ranked = replace(PROGRAM, fleet=replace(FLEET, workers=1, ranks=2))
    files = handover_files(ranked, VERDICTS, EVIDENCE)
    assert set(FILES) - set(files) == {"launch.txt", "repro.py", "curl.sh"}
    assert "The workers have ranks" in files["README.txt"]
    assert "claimed on worker 1" in files["timeline.txt"]


def test_nothing_of_this_machine_is_in_the_files() -> None:
    assert [
        name for name, text in FILES.items() if sys.prefix in text or str(Path.home()) + "/" in text
    ] == []


def test_the_folder_is_written_and_replaced(tmp_path: Path) -> None:
    for _ in range(2):
        write_handover(tmp_path / "a" / "failure-1", PROGRAM, VERDICTS, EVIDENCE)
    folder = tmp_path / "a" / "failure-1"
    assert {path.name: path.read_text() for path in folder.iterdir()} == FILES
    assert load_program(folder / "program.json") == PROGRAM
    runnable = {path.name for path in folder.iterdir() if path.stat().st_mode & stat.S_IXUSR}
    assert runnable == {"repro.py", "curl.sh"}


def test_a_run_that_left_no_evidence_can_be_handed_over() -> None:
    files = handover_files(PROGRAM, VERDICTS, Evidence())
    assert sorted(files) == NAMES
    assert "host-miss" in files["verdict.txt"]


def test_times_count_from_the_first_batch_where_no_request_was_sent() -> None:
    flush = Flush("op0", 0)
    seen = BatchesSeen(0, (Batch(1, 0.0, 0, (), received=5000.25), Batch(2, 0.0, 0, (), received=5000.5)))
    run = Evidence((OperationStarted(flush), seen, OperationDone(flush, 0, ())))
    text = timeline_text(Program(FleetConfig(), (flush,)), run)
    assert re.findall(r"^ +([\d.]+)  worker 0 batch", text, re.MULTILINE) == ["0.0", "250.0"]


def test_the_readme_warns_where_a_script_cannot_do_the_same() -> None:
    healthy = Program(FleetConfig(), (Generate("a", 0, ()), Restart("b", 0)))
    assert "restarts a worker" in readme_text(healthy, [MISS])
    assert "planted" not in readme_text(healthy, [MISS])
    assert "restarts a worker" not in readme_text(PROGRAM, [MISS])


def test_the_short_form_has_a_line_an_operation_with_its_outcome(tmp_path: Path) -> None:
    lines = short_text(PROGRAM, VERDICTS, EVIDENCE, tmp_path).splitlines()
    assert lines[0] == "write_through: host-miss, duplicate-store"
    assert len(lines) == 1 + len(PROGRAM.operations) + 1
    (blamed,) = [line for line in lines if "<--" in line]
    assert blamed.startswith(
        "  op2   probe A[0:37] +2 outputs on worker 1: cached 0 = device 0 + host 0  <-- "
    )
    assert blamed.endswith("host-miss, duplicate-store")
    assert lines[-1] == f"  folder: {tmp_path}"


def test_a_long_program_is_shown_from_its_end() -> None:
    program = Program(FLEET, PROGRAM.operations * 4)
    lines = short_text(program, VERDICTS, Evidence(EVIDENCE.events * 4)).splitlines()
    assert lines[1] == f"  ... {4 * len(PROGRAM.operations) - MOST_LINES} operations before, see timeline.txt"
    assert len(lines) == 2 + MOST_LINES


if __name__ == "__main__":
    for approved in APPROVED:
        (GOLDEN / f"{approved}.golden").write_text(scrubbed(FILES[approved]))

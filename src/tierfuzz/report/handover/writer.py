"""The folder of a violation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tierfuzz.evidence import Evidence
from tierfuzz.program import Program, dump_program
from tierfuzz.report.handover.accused import VERDICTS, dump_verdicts
from tierfuzz.report.handover.curl import curl_text
from tierfuzz.report.handover.launch import launch_text
from tierfuzz.report.handover.readme import readme_text
from tierfuzz.report.handover.regression import regression_text
from tierfuzz.report.handover.repro import repro_text
from tierfuzz.report.handover.timeline import timeline_text
from tierfuzz.report.handover.verdicts import verdict_text
from tierfuzz.verdict import Verdict

PROGRAM = "program.json"
EXECUTABLE = ("repro.py", "curl.sh")
WITHOUT_RANKS = (*EXECUTABLE, "launch.txt")


def handover_files(program: Program, verdicts: Sequence[Verdict], evidence: Evidence) -> dict[str, str]:
    """Text of every file by its name. What runs without tierfuzz knows no ranks: it is left out for them."""
    files = {
        "README.txt": readme_text(program, verdicts),
        "verdict.txt": verdict_text(program, verdicts, evidence),
        "timeline.txt": timeline_text(program, evidence),
        "launch.txt": launch_text(program),
        "repro.py": repro_text(program, verdicts, evidence),
        "curl.sh": curl_text(program, evidence),
        "test_regression.py": regression_text(verdicts),
        PROGRAM: dump_program(program).decode(),
        VERDICTS: dump_verdicts(verdicts),
    }
    if program.fleet.ranks > 1:
        files = {name: text for name, text in files.items() if name not in WITHOUT_RANKS}
    return files


def write_handover(folder: Path, program: Program, verdicts: Sequence[Verdict], evidence: Evidence) -> None:
    """Write the folder of a failing program (issue 3, point 5); files of an older run are replaced.

    `evidence`: of one run of this program, the one that the verdicts are about.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in handover_files(program, verdicts, evidence).items():
        (folder / name).write_text(text)
        if name in EXECUTABLE:
            (folder / name).chmod(0o755)

"""test_regression.py: runs the program through tierfuzz and asks that no oracle is violated."""

from __future__ import annotations

from collections.abc import Sequence

from tierfuzz.verdict import Verdict

TEXT = '''"""Regression test of a finding of tierfuzz: {oracles}.

Run it with pytest where tierfuzz is installed. It starts the workers that program.json describes.
"""

from pathlib import Path

from tierfuzz.fleet import Fleet
from tierfuzz.program import load_program
from tierfuzz.runner import Runner
from tierfuzz.violations import describe

PROGRAM = Path(__file__).with_name("program.json")
FAILED = {failed!r}


def test_no_oracle_is_violated(tmp_path: Path) -> None:
    program = load_program(PROGRAM)
    with Fleet(program.fleet, tmp_path) as fleet:
        runner = Runner(fleet)
        violations = [verdict for verdict in runner.run(program) if verdict.is_violation]
        held = runner.held
    assert not violations, "\\n".join(describe(verdict) for verdict in violations)
    assert any(held[oracle] for oracle in FAILED), f"none of {{FAILED}} was checked: nothing is proved"
'''


def regression_text(verdicts: Sequence[Verdict]) -> str:
    """The file; it fails too when none of the oracles that failed is asked any more."""
    failed = list(dict.fromkeys(verdict.oracle for verdict in verdicts if verdict.is_violation))
    return TEXT.format(oracles=", ".join(failed), failed=failed)

"""What a failing case of the machine becomes: how often it came back, made small, one exception."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from tierfuzz.errors import EnvironmentFailure
from tierfuzz.evidence import Evidence
from tierfuzz.program import Program, dump_program
from tierfuzz.runner import Runner
from tierfuzz.shrink.budget import Limits
from tierfuzz.shrink.words import lines_of
from tierfuzz.shrinking import FleetRuns, Ran, ShrinkConfig, Shrunk, shrink
from tierfuzz.verdict import Verdict
from tierfuzz.violations import Violation, violation_of

_SHRUNK: dict[tuple[bytes, str], Shrunk | None] = {}  # Hypothesis runs a failing case again to report it


def confirmed(runner: Runner, program: Program, failed: list[Verdict], repeats: int) -> list[Verdict]:
    """Run the case again until it ran `repeats` times in all, so that the verdicts say k of n."""
    runs = [failed, *(runner.run(program) for _ in range(repeats - 1))]
    oracles = [{verdict.oracle for verdict in run if verdict.is_violation} for run in runs]
    return [_seen(verdict, sum(verdict.oracle in run for run in oracles), len(runs)) for verdict in failed]


def violation_in(
    runner: Runner, program: Program, failed: list[Verdict], evidence: Evidence, limits: Limits | None
) -> Violation:
    """The exception for a failing case: of the small program, if it could be made small within `limits`."""
    small = _shrunk(runner, program, failed[0], limits) if limits is not None else None
    if small is None or small.ran is None:
        return violation_of(failed, program, evidence)
    said = [small.result.sentence, *(f"  {line}" for line in lines_of(small.result.program))]
    verdicts = _verdicts(small, small.ran)
    return violation_of(verdicts, small.result.program, small.ran.evidence, program, "\n".join(said))


def _shrunk(runner: Runner, program: Program, verdict: Verdict, limits: Limits) -> Shrunk | None:
    key = (dump_program(program), verdict.oracle)
    if key not in _SHRUNK:
        with (
            tempfile.TemporaryDirectory(prefix="tierfuzz-") as logs,
            FleetRuns(Path(logs), runner.fleet) as runs,
        ):
            try:
                _SHRUNK[key] = shrink(program, runs, ShrinkConfig(limits), verdict)
            except EnvironmentFailure:  # what was found is worth more than to make it small
                _SHRUNK[key] = None
    return _SHRUNK[key]


def _verdicts(small: Shrunk, ran: Ran) -> list[Verdict]:
    """Those of the run, the one that was shrunk first, with how often the small program failed."""
    oracle, result = small.result.verdict.oracle, small.result
    mine = [_seen(v, result.failed, result.tried) for v in ran.verdicts if v.oracle == oracle]
    return mine + [verdict for verdict in ran.verdicts if verdict.oracle != oracle]


def _seen(verdict: Verdict, seen: int, tries: int) -> Verdict:
    return msgspec.structs.replace(verdict, seen=seen, tries=tries)

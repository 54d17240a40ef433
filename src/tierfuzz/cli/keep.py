"""What a campaign leaves on disk: result, programs and folders of failing cases; and the last words."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from tierfuzz.campaign_results import CampaignResult, Failure
from tierfuzz.program import dump_program
from tierfuzz.report.handover.short import short_text
from tierfuzz.report.handover.writer import write_handover
from tierfuzz.report.summary import as_json


def kept_programs(result: CampaignResult) -> dict[str, Failure]:
    """Failing cases by the name of their files, each after its small one; then the first case of each known
    defect."""
    failures = [(policy.policy, failure) for policy in result.policies for failure in policy.failures]
    found: dict[str, Failure] = {}
    for number, (policy, failure) in enumerate(failures, 1):
        name = f"failure-{number}-{policy}"
        found |= {f"{name}-min": small} if (small := small_of(failure)) else {}
        found[name] = failure
    for one in result.policies:
        for defect, known in one.known.items():
            found[f"known-{defect}-{one.policy}"] = known.failure
    return found


def small_of(failure: Failure) -> Failure | None:
    """The failure of the program that it was shrunk to."""
    if failure.shrunk is None:
        return None
    small, ran = failure.shrunk.result, failure.shrunk.ran
    if ran is None:
        return Failure([small.verdict], small.program)
    return Failure(ran.verdicts, ran.program, ran.evidence)


def keep(result: CampaignResult, target: Path, console: Console) -> None:
    """Write everything into `target`, and show the short form of what was found."""
    (target / "result.json").write_bytes(as_json(result) + b"\n")
    programs = kept_programs(result)
    for name, failure in programs.items():
        (target / f"{name}.json").write_bytes(dump_program(failure.program))
        write_handover(target / name, failure.program, failure.verdicts, failure.evidence)
    if programs:
        _show(programs, target, console)


def _show(programs: dict[str, Failure], target: Path, console: Console) -> None:
    """The first failure of each oracle and policy, and how to go on."""
    shown: set[tuple[str, str]] = set()
    for name, failure in programs.items():
        policy = failure.program.fleet.policy
        found = {(policy, verdict.oracle) for verdict in failure.verdicts}
        if not found <= shown and not name.startswith("known-") and f"{name}-min" not in programs:
            text = short_text(failure.program, failure.verdicts, failure.evidence, target / name)
            _say(console, text)
        shown |= found
    first = next(iter(programs))
    _say(console, f"Programs and journals are in {target}; try: tierfuzz replay {target / first}.json")


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)

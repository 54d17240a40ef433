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
    """Failing cases by the name of their files, then the first case of each known defect."""
    failures = [(policy.policy, failure) for policy in result.policies for failure in policy.failures]
    found = {f"failure-{number}-{policy}": failure for number, (policy, failure) in enumerate(failures, 1)}
    for policy in result.policies:
        for defect, known in policy.known.items():
            found[f"known-{defect}-{policy.policy}"] = known.failure
    return found


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
        found = {(failure.program.fleet.policy, verdict.oracle) for verdict in failure.verdicts}
        if not found <= shown and not name.startswith("known-"):
            text = short_text(failure.program, failure.verdicts, failure.evidence, target / name)
            _say(console, text)
        shown |= found
    first = next(iter(programs))
    _say(console, f"Programs and journals are in {target}; try: tierfuzz replay {target / first}.json")


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)

"""The end of a campaign: tables for people, and one JSON object for programs."""

from __future__ import annotations

from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from tierfuzz.campaign import CampaignResult, PolicyResult
from tierfuzz.errors import ExitCode
from tierfuzz.oracles.registry import ORACLES
from tierfuzz.oracles.transitions import TRANSITIONS
from tierfuzz.violations import describe

FORMAT = 1
REACH = (
    "probe-host-only",
    "device-hit",
    "host-hit",
    "storage-hit",
    "mixed-hit",
    "load-back",
    "device-eviction",
    "host-eviction",
    "exact-multiple",
    "namespace",
    "overlap",
    "aborted",
    "held-copies",
    "flush",
    "restart",
    "at-rest",
)


def print_summary(console: Console, result: CampaignResult) -> None:
    """Operations, reach and verdicts of each policy, then the first violation of each oracle."""
    console.print(_runs(result))
    console.print(_reach(result))
    console.print(_verdicts(result))
    for policy in result.policies:
        _print_known(console, policy)
        _print_violations(console, policy)
    for entry in result.unseen:
        text = f"Possibly fixed: {entry.id} ({entry.title} {entry.link}) could have shown here and did not."
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    for what in result.broken:
        console.print(f"Output is incomplete: {what}", highlight=False, markup=False)
    console.print(ending(result), highlight=False, soft_wrap=True)


def _table(title: str, result: CampaignResult) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for policy in result.policies:
        table.add_column(policy.policy, justify="right")
    return table


def _runs(result: CampaignResult) -> Table:
    table = _table("Operations", result)
    table.add_row("cases", *[str(p.examples) for p in result.policies])
    table.add_row("operations", *[str(p.operations) for p in result.policies])
    table.add_row("requests", *[str(p.requests) for p in result.policies])
    table.add_row("seconds", *[f"{p.seconds:.1f}" for p in result.policies])
    return table


def _reach(result: CampaignResult) -> Table:
    table = _table("Reach", result)
    for name in (*REACH, *TRANSITIONS):
        table.add_row(name, *[str(p.reach[name]) for p in result.policies])
    return table


def _verdicts(result: CampaignResult) -> Table:
    table = _table("Verdicts: held / violations / unknown", result)
    for slug in ORACLES:
        table.add_row(slug, *[_cell(p, slug) for p in result.policies])
    return table


def _cell(policy: PolicyResult, slug: str) -> str:
    text = f"{policy.held[slug]} / {policy.violated[slug]} / {policy.unknown[slug]}"
    return f"[bold red]{text}[/]" if policy.violated[slug] else text


def _print_known(console: Console, policy: PolicyResult) -> None:
    for defect, known in sorted(policy.known.items()):
        cases = f"{known.cases} {'case' if known.cases == 1 else 'cases'}"
        entry = policy.accepted.get(defect)
        what = f"{defect}, accepted ({entry.title} {entry.link})," if entry else defect
        text = f"{policy.policy}: known defect {what} in {cases}: {describe(known.failure.verdicts[0])}"
        console.print(text, highlight=False, markup=False, soft_wrap=True)


def _print_violations(console: Console, policy: PolicyResult) -> None:
    shown: set[str] = set()
    for failure in policy.failures:
        for verdict in failure.verdicts:
            if verdict.oracle not in shown:
                shown.add(verdict.oracle)
                text = f"{policy.policy}: {describe(verdict)}"
                console.print(text, highlight=False, markup=False, soft_wrap=True)
        if failure.shrunk is not None:
            text = f"{policy.policy}: {failure.shrunk.result.sentence}"
            console.print(text, highlight=False, markup=False, soft_wrap=True)


def ending(result: CampaignResult) -> str:
    """One sentence that says what the exit code says."""
    cases = sum(len(policy.failures) for policy in result.policies)
    found = f"Violations in {cases} {'case' if cases == 1 else 'cases'}."
    if result.interrupted:
        return f"Interrupted: the figures above are of what was done. {found if cases else ''}".rstrip()
    known = sorted({defect for policy in result.policies for defect in policy.known})
    if known and result.exit_code is not ExitCode.VACUOUS:
        return (
            f"{found if cases else 'No new violations.'} Known defects of this version: {', '.join(known)}."
        )
    if cases:
        return found
    vacuous = [policy.policy for policy in result.policies if policy.vacuous]
    if vacuous:
        return (
            f"Vacuous: {result.policies[0].required} was never reached under {', '.join(vacuous)}; "
            "nothing is proved. "
            "Run more examples or steps, or give the host pool more room (--host-ratio)."
        )
    return "Every verdict held."


def as_json(result: CampaignResult) -> bytes:
    """The same as one versioned JSON object."""
    body: dict[str, Any] = {
        "kind": "campaign",
        "format": FORMAT,
        "exit_code": int(result.exit_code),
        "interrupted": result.interrupted,
        "broken": result.broken,
        "possibly_fixed": [entry.id for entry in result.unseen],
        "policies": [_policy(policy) for policy in result.policies],
    }
    return msgspec.json.encode(body)


def _policy(policy: PolicyResult) -> dict[str, Any]:
    return {
        "policy": policy.policy,
        "examples": policy.examples,
        "operations": policy.operations,
        "requests": policy.requests,
        "seconds": round(policy.seconds, 3),
        "reach": dict(sorted(policy.reach.items())),
        "held": {slug: policy.held[slug] for slug in ORACLES},
        "violated": dict(policy.violated),
        "unknown": dict(policy.unknown),
        "known": {
            defect: {
                "cases": known.cases,
                "accepted": defect in policy.accepted,
                "verdicts": known.failure.verdicts,
            }
            for defect, known in sorted(policy.known.items())
        },
        "shrunk": [failure.shrunk.result for failure in policy.failures if failure.shrunk is not None],
        "violations": [verdict for failure in policy.failures for verdict in failure.verdicts],
    }

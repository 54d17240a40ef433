"""The end of a content campaign: tables for people, and one JSON object for programs."""

from __future__ import annotations

from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from tierfuzz.campaign_content import ContentResult
from tierfuzz.oracles.contents import Comparison, Finding

FORMAT = 1


def print_content(console: Console, result: ContentResult) -> None:
    """Comparisons by kind and tier, then every question with its counts."""
    if result.figures is not None:
        console.print(result.figures.described(), highlight=False, soft_wrap=True)
    console.print(_comparisons(result.seen))
    for finding in result.findings:
        console.print(described(finding), highlight=False, soft_wrap=True)
    console.print(ending(result), highlight=False, soft_wrap=True)


def _comparisons(seen: list[Comparison]) -> Table:
    table = Table(title="Answers against cold ones", title_justify="left")
    for name in ("prefix", "served from", "answers", "median", "largest", "other outputs"):
        table.add_column(name, justify="left" if name in ("prefix", "served from") else "right")
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for one in seen:
        groups.setdefault((one.kind, one.served), []).append(one)
    for (kind, served), ones in sorted(groups.items()):
        apart = sorted(one.difference for one in ones)
        moved = sum(not one.greedy for one in ones)
        middle, largest = f"{apart[len(apart) // 2]:.3f}", f"{apart[-1]:.3f}"
        table.add_row(kind, served, str(len(ones)), middle, largest, str(moved))
    return table


def described(one: Finding) -> str:
    """One question in one line."""
    return (
        f"{one.outcome}: {one.question}: {one.differ} of {one.tries}; {one.control}: {one.control_differ} of "
        f"{one.control_tries} (beyond {one.limit:.3f}; odds of chance {one.odds:.1e})"
    )


def ending(result: ContentResult) -> str:
    """One line."""
    wrong = [one for one in result.findings if one.outcome == "differs"]
    if not wrong:
        return f"No wrong contents in {len(result.seen)} comparisons ({result.requests} requests)."
    said = "; ".join(f"{one.question}: {one.differ} of {one.tries}" for one in wrong)
    return f"Wrong contents: {said}."


def as_json(result: ContentResult) -> str:
    """Everything, the comparisons too."""
    shown: dict[str, Any] = {
        "format": FORMAT,
        "kind": "content",
        "fleet": result.fleet,
        "figures": result.figures,
        "load": result.load,
        "findings": result.findings,
        "comparisons": result.seen,
        "requests": result.requests,
        "seconds": round(result.seconds, 1),
        "exit_code": int(result.exit_code),
    }
    return msgspec.json.encode(shown).decode()

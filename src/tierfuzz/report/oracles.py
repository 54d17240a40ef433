"""The table of oracles, for docs/oracles.md."""

from __future__ import annotations

from tierfuzz.faults.registry import FAULTS
from tierfuzz.oracles.registry import ORACLES

_SCOPES = {"always": "always", "at_rest": "at rest"}


def oracle_table() -> str:
    """Markdown: a row an oracle, with the faults that name it."""
    lines = ["| oracle | asked | a violation says | planted by |", "|---|---|---|---|"]
    for oracle in ORACLES.values():
        faults = ", ".join(f"`{name}`" for name, fault in FAULTS.items() if fault.oracle == oracle.slug)
        lines.append(f"| `{oracle.slug}` | {_SCOPES[oracle.scope]} | {oracle.explanation} | {faults} |")
    return "\n".join(lines)

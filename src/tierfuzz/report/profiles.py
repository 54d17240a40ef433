"""The table of profiles and the defects that each of them has, for docs/profiles.md."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass

from tierfuzz.model.rules import PROFILES, Rules

_GROUP = re.compile(r"# defects -+\n(.*?)# plain rules -+\n", re.DOTALL)
_SWITCH = re.compile(r"^ +(\w+): bool = (?:True|False)  # (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Switch:
    """One rule that a profile may turn on or off; `meaning` is the comment beside it, with its source."""

    name: str
    meaning: str


def defect_switches() -> list[Switch]:
    """The first group of `Rules`, in its order: what users see of a version's defects."""
    group = _GROUP.search(inspect.getsource(Rules))
    assert group is not None
    return [Switch(name, meaning) for name, meaning in _SWITCH.findall(group[1])]


def profile_table() -> str:
    """Markdown: a row a switch, a column a profile; bold where a profile is not as a healthy engine."""
    lines = [
        f"| switch | {' | '.join(PROFILES)} | what it does when on |",
        f"|---|{'---|' * len(PROFILES)}---|",
    ]
    lines += [f"| `{s.name}` | {_cells(s.name)} | {s.meaning} |" for s in defect_switches()]
    return "\n".join(lines)


def _cells(name: str) -> str:
    values = [getattr(rules, name) for rules in PROFILES.values()]
    words = ["on" if value else "off" for value in values]
    healthy = getattr(Rules(), name)
    return " | ".join(w if v == healthy else f"**{w}**" for w, v in zip(words, values, strict=True))

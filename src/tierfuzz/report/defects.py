"""The table of known defects by profile, for docs/defects.md."""

from __future__ import annotations

import inspect

from tierfuzz.defects.programs import PROGRAMS
from tierfuzz.model.rules import PROFILES

# Known, but not to be shown by running the step model, each with the reason.
NOT_SHOWN: dict[str, str] = {
    "B1": "stale content of the last generated token: a race of GPU streams; needs a GPU",
    "B2": "load-back overwritten by a step in flight: a race of GPU streams; needs a GPU",
    "B3": "policy switch at run time leaves an unbacked leaf with children: the endpoint decides",
    "B4": "storage attached at run time writes pages under wrong keys: needs an engine without events",
    "B10": "a storage look-up below an unbacked node: the model makes no look-up there in any profile",
    "B11": "a null publisher kills the start: no publisher in the model; the simulated worker refuses it",
    "B12": "clearing storage always answers success: an endpoint without effect on the model",
    "B14": "a load-back whose request is not admitted: needs mixed chunks, which the model has not",
    "B19": "a flush during a storage read: reads end at once in the model",
    "B20": "a file is left in shared memory: no such file here",
    "N2": "a victim is dropped because the host is full of copies being loaded: true of every profile "
    "when the host pool is smaller than the device pool",
}


def defect_table() -> str:
    """Markdown: one row a defect, yes where its minimal program shows it."""
    names = sorted(PROFILES)
    lines = ["| defect | what the program shows | " + " | ".join(names) + " |"]
    lines.append("|---|---|" + "---|" * len(names))
    for name, program in PROGRAMS.items():
        cells = ["yes" if program(profile) else "no" for profile in names]
        lines.append(f"| {name} | {inspect.getdoc(program)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def not_shown_table() -> str:
    """Markdown: the defects without a program, and why."""
    rows = [f"| {name} | {reason} |" for name, reason in NOT_SHOWN.items()]
    return "\n".join(["| defect | why no program shows it |", "|---|---|", *rows])

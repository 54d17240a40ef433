"""Which known defect a violation is: by its oracle and facts, where the version has that defect.

Nothing is looked for because it is known: a violation is found first and named afterwards, so that findings
that are new stand apart. An entry asks for what only its defect does; what is left over is new.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Sequence
from importlib.resources import files
from pathlib import Path

from tierfuzz.defects.entry import KnownDefect, parse_known
from tierfuzz.errors import UsageError
from tierfuzz.model.versions import version_of_fleet
from tierfuzz.program import FleetConfig
from tierfuzz.verdict import Verdict

SUFFIX = ".json"


def shipped_names() -> list[str]:
    """Names of the files that come with tierfuzz."""
    folder = files("tierfuzz.known")
    return sorted(f.name.removesuffix(SUFFIX) for f in folder.iterdir() if f.name.endswith(SUFFIX))


def load_known(name: str) -> tuple[KnownDefect, ...]:
    """Entries of a file, or of one that comes with tierfuzz by its name (sglang-0.5.17)."""
    if name in shipped_names():
        return parse_known((files("tierfuzz.known") / f"{name}{SUFFIX}").read_bytes(), name)
    if not Path(name).is_file():
        raise UsageError(f"--known {name}: no such file; expected a path or one of {shipped_names()}")
    return parse_known(Path(name).read_bytes(), name)


@functools.cache
def shipped() -> tuple[KnownDefect, ...]:
    """All entries that come with tierfuzz."""
    return tuple(entry for name in shipped_names() for entry in load_known(name))


def explained_by(verdict: Verdict, config: FleetConfig, entries: Iterable[KnownDefect]) -> KnownDefect | None:
    """The first entry that this violation is; None for one that is new."""
    version = version_of_fleet(config)
    fitting = (entry for entry in entries if entry.applies(config, version) and entry.explains(verdict))
    return next(fitting, None)


def unseen(
    entries: Iterable[KnownDefect], fleets: Iterable[FleetConfig], seen: Collection[str]
) -> list[KnownDefect]:
    """Entries that apply to some of the fleets and whose defect was not seen there: fixed, perhaps."""
    tried = list(fleets)
    missing: dict[str, KnownDefect] = {}
    for entry in entries:
        if entry.id not in seen and any(entry.applies(fleet, version_of_fleet(fleet)) for fleet in tried):
            missing.setdefault(entry.id, entry)
    return list(missing.values())


def known_defect(verdict: Verdict, config: FleetConfig, own: Sequence[KnownDefect] = ()) -> str:
    """The name of the known defect that this violation is, or "" for one that is new. `own`: entries that are
    asked before those that come with tierfuzz."""
    entry = explained_by(verdict, config, (*own, *shipped()))
    return entry.id if entry else ""

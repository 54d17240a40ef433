"""Hypothesis profiles of tierfuzz: sim (default), ci, gpu, soak (design: Nondeterminism)."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis.database import (
    DirectoryBasedExampleDatabase,
    ExampleDatabase,
    MultiplexedDatabase,
    ReadOnlyDatabase,
)
from hypothesis.errors import InvalidArgument

DATABASE_FOLDER = "hypothesis_db"
SHARED_DATABASE_VARIABLE = "TIERFUZZ_SHARED_DB"
PROFILES = ("sim", "ci", "gpu", "soak")
SIM = (25, 30)  # examples, operations a case
CI = (15, 25)
# On live workers Hypothesis shrinks and explains for minutes (measured: 318 s, where it gives up): left out.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.target)
LIBRARY = (100, 50)  # what Hypothesis itself has: nobody has chosen


def database(root: Path) -> ExampleDatabase:
    """Our own examples, and read-only those of a shared folder where the variable names one."""
    own = DirectoryBasedExampleDatabase(root / DATABASE_FOLDER)
    shared = os.environ.get(SHARED_DATABASE_VARIABLE)
    if not shared:
        return own
    return MultiplexedDatabase(own, ReadOnlyDatabase(DirectoryBasedExampleDatabase(shared)))


def nearest_root(start: Path) -> Path:
    """The folder at or above `start` that has a database already; `start` where there is none."""
    return next((f for f in (start, *start.parents) if (f / DATABASE_FOLDER).is_dir()), start)


def register(root: Path) -> None:
    """Register the profiles that are not there yet (`ci` is: Hypothesis has one of its own).

    Each has the library's default as parent: under CI a profile without one would inherit derandomize and no
    database. Rule time is not in the deadline, so there is none; live workers are never "too slow".
    """
    own = database(root)
    _add("sim", _profile(SIM, own))
    _add("ci", _profile(CI, None))
    _add("gpu", _profile((20, 40), own))
    _add("soak", _profile((10_000, 60), own))


def machine_settings(root: Path) -> settings:
    """For a machine: those of the active profile, and a budget for live workers where nobody chose one.

    Hypothesis' budget of 100 cases of 50 steps would take minutes: it becomes that of `sim`, or under CI
    (where Hypothesis loads its own `ci`: derandomized, without a database) that of `ci`.
    """
    active = settings(deadline=None, suppress_health_check=list(HealthCheck))
    if (active.max_examples, active.stateful_step_count) != LIBRARY:
        return active
    return _profile(CI, None) if active.derandomize else _profile(SIM, database(root))


def _profile(budget: tuple[int, int], examples: ExampleDatabase | None) -> settings:
    return settings(
        settings.get_profile("default"),
        max_examples=budget[0],
        stateful_step_count=budget[1],
        database=examples,
        deadline=None,
        print_blob=False,
        derandomize=examples is None,
        phases=PHASES,
        suppress_health_check=list(HealthCheck),
    )


def _add(name: str, profile: settings) -> None:
    try:
        settings.get_profile(name)
    except InvalidArgument:
        settings.register_profile(name, profile)

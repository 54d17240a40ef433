"""Hypothesis profiles of tierfuzz: sim (default), ci, gpu, soak (design: Nondeterminism)."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.database import (
    DirectoryBasedExampleDatabase,
    ExampleDatabase,
    MultiplexedDatabase,
    ReadOnlyDatabase,
)

DATABASE_FOLDER = "hypothesis_db"
SHARED_DATABASE_VARIABLE = "TIERFUZZ_SHARED_DB"
PROFILES = ("sim", "ci", "gpu", "soak")


def database(root: Path) -> ExampleDatabase:
    """Our own examples, and read-only those of a shared folder where the variable names one."""
    own = DirectoryBasedExampleDatabase(root / DATABASE_FOLDER)
    shared = os.environ.get(SHARED_DATABASE_VARIABLE)
    if not shared:
        return own
    return MultiplexedDatabase(own, ReadOnlyDatabase(DirectoryBasedExampleDatabase(shared)))


def register(root: Path) -> None:
    """Register the profiles that are not there yet.

    Each has the library's default as parent: under CI a profile without one would inherit derandomize and no
    database. Rule time is not in the deadline, so there is none; live workers are never "too slow".
    """
    own = database(root)
    _add("sim", _profile(25, 30, own))
    _add("ci", settings(_profile(15, 25, None), derandomize=True))
    _add("gpu", _profile(20, 40, own))
    _add("soak", _profile(10_000, 60, own))


def _profile(examples: int, steps: int, examples_database: ExampleDatabase | None) -> settings:
    return settings(
        settings.get_profile("default"),
        max_examples=examples,
        stateful_step_count=steps,
        database=examples_database,
        deadline=None,
        print_blob=False,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
    )


def _add(name: str, profile: settings) -> None:
    try:
        settings.get_profile(name)
    except Exception:  # Hypothesis raises InvalidArgument for a name that it does not know
        settings.register_profile(name, profile)

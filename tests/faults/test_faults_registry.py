"""The registry of planted faults: names, files of a user, and what every fault declares."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from tierfuzz.errors import UsageError
from tierfuzz.faults.registry import FAULTS, fault_name, make_fault
from tierfuzz.faults.tree import NoBackup
from tierfuzz.model.faults import SEAMS, Fault
from tierfuzz.oracles.registry import ORACLES

FILE = '''
"""A fault of a user."""
from tierfuzz.model.faults import Fault


class Mine(Fault):
    """Loses everything."""

    oracle = "host-miss"
    source = "here"


class Other:
    """No fault."""
'''


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_is_made_by_its_name_anew_each_time(name: str) -> None:
    made = make_fault(name)
    assert type(made) is FAULTS[name]
    assert fault_name(type(made)) == name
    assert make_fault(name) is not made


def test_names_are_the_class_names_in_kebab_case() -> None:
    assert FAULTS["no-backup"] is NoBackup
    assert len(FAULTS) >= 20


def test_a_fault_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "my_faults.py"
    path.write_text(FILE)
    made = make_fault(f"{path}:Mine")
    assert isinstance(made, Fault)
    assert (type(made).__name__, made.oracle, made.source) == ("Mine", "host-miss", "here")


def test_a_class_that_is_no_fault_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "my_faults.py"
    path.write_text(FILE)
    for name in ("Other", "Absent", ""):
        with pytest.raises(UsageError, match=f"has no class {name} derived from"):
            make_fault(f"{path}:{name}")


def test_a_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent\.py does not exist; expected file\.py:Class"):
        make_fault(f"{tmp_path}/absent.py:Mine")


@pytest.mark.parametrize("name", ["no-such-fault", "NoBackup", ""])
def test_an_unknown_name_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match=r"expected file\.py:Class or one of: abort-keeps-lock, .*no-backup"):
        make_fault(name)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_every_fault_says_what_it_does_what_notices_it_and_where_it_was_seen(fault: type[Fault]) -> None:
    assert (fault.__doc__ or "").strip().endswith(".")
    assert fault.__doc__ != Fault.__doc__
    assert fault.oracle in ORACLES
    assert fault.source


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_every_fault_overrides_seams_only_and_at_least_one(fault: type[Fault]) -> None:
    methods = {name for name, value in vars(fault).items() if inspect.isfunction(value)}
    seams = methods - {"__init__"}
    assert seams
    assert seams <= set(SEAMS)

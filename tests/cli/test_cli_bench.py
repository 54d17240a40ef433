"""tierfuzz bench: which cases are chosen."""

from __future__ import annotations

import pytest

from tierfuzz.catalogue.case import Case
from tierfuzz.cli.bench import chosen_cases
from tierfuzz.errors import UsageError

A = Case("T01", "t", "s", "lifecycle", ("CRASH",), "p", ("crash",))
B = Case("T02", "t", "s", "lifecycle", ("CRASH",), reason="needs a GPU")


def test_cases_are_chosen_by_id_or_by_fault() -> None:
    assert chosen_cases((A, B), ()) == (A, B)
    assert chosen_cases((A, B), ("p",)) == (A,)
    assert chosen_cases((A, B), ("T02", "T01")) == (A, B)


def test_what_is_neither_is_refused_with_what_was_expected() -> None:
    with pytest.raises(UsageError, match=r"--fault T99: expected an id of the catalogue \(T01\) or a fault"):
        chosen_cases((A, B), ("T99", "p"))

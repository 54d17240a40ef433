"""Consumers by name: an extra that is missing is said with what to do."""

from __future__ import annotations

import pytest

from tierfuzz.errors import EnvironmentFailure, UsageError
from tierfuzz.faults.registry import make_fault
from tierfuzz.routers import registry
from tierfuzz.routers.registry import Live, make_consumer


def test_our_own_consumers_need_nothing() -> None:
    assert make_consumer("reference").name == "reference"


def test_an_unknown_name_is_said_with_all_that_are_known() -> None:
    with pytest.raises(UsageError, match=r"unknown consumer 'smart'; expected one of: dynamo-direct"):
        make_consumer("smart")


def test_a_missing_extra_is_said_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.LIVE, "odd", Live("tierfuzz.routers.odd", "Odd", "odd", ("no_such_module",)))
    with pytest.raises(EnvironmentFailure, match=r"consumer odd needs no_such_module; .*uv sync --extra odd"):
        make_consumer("odd")


def test_nothing_can_be_planted_in_code_of_others() -> None:
    with pytest.raises(UsageError, match="in our own consumers only"):
        make_consumer("dynamo-direct", [make_fault("gap-ignored")])

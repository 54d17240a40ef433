"""Each defect shows exactly in the versions that the reference names, and never in a healthy engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierfuzz.defects.programs import PROGRAMS
from tierfuzz.report.defects import NOT_SHOWN, defect_table, not_shown_table

PAGE = Path(__file__).parents[2] / "docs" / "defects.md"
ONLY_0_5_17 = {"B5", "B6", "B6b", "B7", "B8", "B15", "B17", "E1", "E4"}
ONLY_0_5_23 = {"N1", "N5"}


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_defect_shows_in_the_versions_that_have_it(name: str) -> None:
    program = PROGRAMS[name]
    assert program("sglang-0.5.17") is (name not in ONLY_0_5_23)
    assert program("sglang-0.5.23") is (name not in ONLY_0_5_17)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_healthy_engine_shows_none(name: str) -> None:
    assert PROGRAMS[name]("default") is False


def test_the_page_is_what_the_programs_show() -> None:
    text = PAGE.read_text()
    assert defect_table() in text
    assert not_shown_table() in text
    assert not set(NOT_SHOWN) & set(PROGRAMS)

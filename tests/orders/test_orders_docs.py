"""docs/orders.md says what the rules are, and the figures in it can be had again."""

from __future__ import annotations

from pathlib import Path

from tierfuzz.orders.check import Finding
from tierfuzz.report.orders import KINDS, family_table, rule_table

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "orders.md").read_text()


def test_the_rules_are_all_described() -> None:
    assert rule_table() in PAGE


def test_the_families_are_all_described() -> None:
    assert family_table() in PAGE


def test_the_kinds_of_wrong_answers_are_all_described() -> None:
    assert all(f"| `{kind}` |" in PAGE for kind in KINDS)
    assert all(f'"{kind}"' in (Finding.__doc__ or "") for kind in KINDS)

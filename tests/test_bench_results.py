"""The score of a bench, and its exit code."""

from __future__ import annotations

import msgspec
import pytest

from tierfuzz.bench_results import BenchResult, BenchRow, ControlRow, median
from tierfuzz.catalogue.case import Case
from tierfuzz.errors import ExitCode
from tierfuzz.report.bench import bench_json, line, sentences

FOUND = BenchRow("T01", "p", 0, ("crash", "hang"), "crash", True, 59, 2.0, 59, 3, 7, 16, True)
OTHER = BenchRow("T02", "q", 0, ("hang",), "hang", False, 300, 20.0)
MISSED = BenchRow("T02", "q", 0, (), "", False, 300, 20.0)
CANARY = BenchRow("canary", "canary", 0, ("phantom-hit",), "phantom-hit", True, 3000, 30.0)
SILENT = ControlRow("write_back", 0, 6, 60, (), True)
ACCUSED = ControlRow("write_back", 0, 6, 60, ("host-miss",), True)
CASES = (
    Case("T01", "t", "s", "engine tree", ("CRASH",), "p", ("crash",)),
    Case("T02", "t", "s", "lifecycle", ("CRASH",), "q", ("crash",)),
    Case("T03", "t", "s", "lifecycle", ("CRASH",), reason="needs a GPU"),
)


def result_of(*rows: BenchRow, control: ControlRow = SILENT, canary: BenchRow | None = CANARY) -> BenchResult:
    """A bench of one seed."""
    return BenchResult(CASES, 1, list(rows), [control], canary)


def test_the_score_counts_finds_by_a_named_oracle_only() -> None:
    assert result_of(FOUND, OTHER).score == 1
    assert result_of(FOUND, msgspec.structs.replace(OTHER, named=True)).score == 2
    assert result_of(FOUND, MISSED).score == 1


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (result_of(FOUND, msgspec.structs.replace(OTHER, named=True)), ExitCode.HELD),
        (result_of(FOUND, OTHER), ExitCode.VIOLATION),
        (result_of(FOUND), ExitCode.VIOLATION),
        (result_of(FOUND, msgspec.structs.replace(OTHER, named=True), canary=MISSED), ExitCode.VIOLATION),
        (result_of(FOUND, msgspec.structs.replace(OTHER, named=True), control=ACCUSED), ExitCode.VIOLATION),
        (
            result_of(FOUND, control=msgspec.structs.replace(SILENT, reached=False)),
            ExitCode.VACUOUS,
        ),
        (BenchResult(CASES[2:], 1), ExitCode.VACUOUS),
    ],
)
def test_the_exit_code_says_whether_everything_was_found(result: BenchResult, code: ExitCode) -> None:
    assert result.exit_code is code


def test_the_report_names_the_denominator_and_what_is_missing() -> None:
    text = "\n".join(sentences(result_of(FOUND, OTHER, control=ACCUSED)))
    assert "Score: 1 of 3 cases found in 1 of 1 seeds" in text
    assert "(2 can be planted)" in text
    assert "engine tree 1 of 1, lifecycle 0 of 2" in text
    assert "1 of 1 healthy fleets were accused" in text
    assert "FALSE ALARM host-miss" in text
    assert "T02 q seed 0: only hang, 300 operations" in text
    assert "T03 cannot be planted: needs a GPU" in text
    assert "median of 3 operations" in text


def test_a_line_says_what_became_of_a_search() -> None:
    expected = "T01 p seed 0: found by crash, 59 operations, 2.0 s; 59 operations became 3 in 7 runs"
    assert line(FOUND) == expected
    assert "NOT FOUND" in line(MISSED)
    assert line(SILENT).startswith("control silent: 6 cases")


def test_the_json_has_every_row_and_what_cannot_be_planted() -> None:
    data = msgspec.json.decode(bench_json(result_of(FOUND, OTHER)))
    assert (data["kind"], data["format"], data["score"], data["cases"]) == ("bench", 1, 1, 3)
    assert [row["case"] for row in data["rows"]] == ["T01", "T02"]
    assert data["not_plantable"] == {"T03": "needs a GPU"}


def test_the_median_of_nothing_is_zero() -> None:
    assert median([]) == 0
    assert median([1, 9, 2]) == 2

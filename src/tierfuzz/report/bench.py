"""The bench for people and for programs: a row a case, the controls, the canary, and the score."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from rich.console import Console
from rich.table import Table

from tierfuzz.bench_results import BENCH_FORMAT, BenchResult, BenchRow, ControlRow, median
from tierfuzz.catalogue.case import COMPONENTS, Case

LONG = 20
COLUMNS = ("case", "fault", "found", "by", "operations", "seconds", "shrunk", "runs", "operations to shrink")


def line(row: BenchRow | ControlRow) -> str:
    """One search, in one line, as soon as it is over."""
    if isinstance(row, ControlRow):
        said = "silent" if row.silent else f"FALSE ALARM {', '.join(row.oracles)}"
        return f"control {said}: {row.cases} cases, {row.operations} operations ({row.fleet})"
    found = f"found by {row.by}" if row.named else f"only {row.by}" if row.found else "NOT FOUND"
    text = (
        f"{row.case} {row.plant} seed {row.seed}: {found}, {row.operations} operations, {row.seconds:.1f} s"
    )
    if row.length:
        text += f"; {row.was} operations became {row.length} in {row.shrink_runs} runs"
    return f"{text}; {row.error}" if row.error else text


def print_bench(console: Console, result: BenchResult) -> None:
    """The table, then what it comes to."""
    table = Table(title="Bench: planted faults", title_justify="left")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in ("case", "fault", "by") else "right")
    for case in result.plantable:
        table.add_row(*_cells(case, result.rows_of(case)))
    console.print(table)
    for text in sentences(result):
        console.print(text, highlight=False, markup=False, soft_wrap=True)


def _cells(case: Case, rows: list[BenchRow]) -> list[str]:
    small = [row for row in rows if row.length]
    return [
        case.id,
        case.plant,
        f"{sum(row.named for row in rows)}/{len(rows)}",
        ", ".join(sorted({row.by for row in rows if row.by})),
        f"{median(row.operations for row in rows):g}",
        f"{median(row.seconds for row in rows):.1f}",
        ", ".join(f"{row.was} to {row.length}" for row in small),
        f"{median(row.shrink_runs for row in small):g}" if small else "",
        f"{median(row.shrink_operations for row in small):g}" if small else "",
    ]


def sentences(result: BenchResult) -> list[str]:
    """Score with its denominator, components, medians, controls, canary, and what was not found."""
    found, all_cases = result.score, len(result.cases)
    texts = [
        f"Score: {found} of {all_cases} cases found in {result.seeds} of {result.seeds} seeds by an oracle "
        f"that the case names ({len(result.plantable)} can be planted), in {result.seconds:.0f} s.",
        "By component: " + ", ".join(_by_component(result)) + ".",
    ]
    times = [row.seconds for row in result.rows if row.named]
    texts.append(f"Until found: median {median(times):.1f} s, at most {max(times, default=0.0):.1f} s.")
    texts += _shrinking(result.rows)
    false = [row for row in result.controls if not row.silent]
    texts.append(f"Control: {len(false)} of {len(result.controls)} healthy fleets were accused.")
    texts += [line(row) for row in false]
    if result.canary is not None:
        texts.append("Canary: " + line(result.canary))
    texts += [line(row) for row in result.rows if not row.named]
    texts += [f"{case.id} cannot be planted: {case.reason}" for case in result.cases if not case.plant]
    return texts + (["Interrupted: the figures above are of what was done."] if result.interrupted else [])


def _by_component(result: BenchResult) -> Iterable[str]:
    for component in COMPONENTS:
        cases = [case for case in result.cases if case.component == component]
        if cases:
            yield f"{component} {sum(map(result.found_always, cases))} of {len(cases)}"


def _shrinking(rows: list[BenchRow]) -> list[str]:
    small = [row for row in rows if row.length]
    if not small:
        return []
    long = [row for row in small if row.was >= LONG]
    lengths = [row.length for row in small]
    runs, operations = median(r.shrink_runs for r in long), median(r.shrink_operations for r in long)
    return [
        f"Shrunk: {len(small)} programs to a median of {median(lengths):g} operations, at most "
        f"{max(lengths)}; {sum(row.minimal is True for row in small)} are 1-minimal.",
        f"Of them {len(long)} had {LONG} operations and more: median {runs:g} runs and {operations:g} "
        "operations to shrink.",
    ]


def bench_json(result: BenchResult) -> bytes:
    """The same as one versioned JSON object."""
    return msgspec.json.encode(
        {
            "kind": "bench",
            "format": BENCH_FORMAT,
            "exit_code": int(result.exit_code),
            "interrupted": result.interrupted,
            "seeds": result.seeds,
            "seconds": round(result.seconds, 3),
            "score": result.score,
            "cases": len(result.cases),
            "plantable": len(result.plantable),
            "not_plantable": {case.id: case.reason for case in result.cases if not case.plant},
            "canary": result.canary,
            "controls": result.controls,
            "rows": result.rows,
        }
    )

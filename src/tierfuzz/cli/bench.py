"""tierfuzz bench: whether the machine finds the known faults, and how small it makes them."""

from __future__ import annotations

import sys

import click

from tierfuzz.catalogue.case import Case
from tierfuzz.errors import UsageError


@click.command(context_settings={"show_default": True})
@click.option(
    "--fault", multiple=True, help="A case (T01) or a fault by its name; repeatable. [default: all of them]"
)
@click.option("--seeds", type=click.IntRange(1), default=3, help="Searches for each fault.")
@click.option("--budget", type=click.FloatRange(0, min_open=True), default=20.0, help="Seconds a search.")
@click.option("--shrink-seeds", type=click.IntRange(0), default=1, help="Shrink the finds of so many seeds.")
@click.option("--json", "json_", is_flag=True, help="Print one JSON object and nothing else.")
def bench(fault: tuple[str, ...], seeds: int, budget: float, shrink_seeds: int, json_: bool) -> None:
    """Plant every known fault in turn, look for it, and shrink what is found.

    Exit codes: 0 every fault that can be planted was found in every seed, and nothing on healthy workers;
    1 not so; 2 wrong usage; 130 Ctrl-C.
    """
    from rich.console import Console

    from tierfuzz.bench import BenchConfig, run_bench
    from tierfuzz.catalogue.all_cases import CASES
    from tierfuzz.report.bench import bench_json, line, print_bench

    config = BenchConfig(seeds=seeds, budget_s=budget, shrink_seeds=shrink_seeds)
    chosen = chosen_cases(CASES, fault)
    result = run_bench(chosen, config, lambda row: None if json_ else click.echo(line(row)))
    if json_:
        click.echo(bench_json(result))
    else:
        print_bench(Console(width=160), result)
    sys.exit(int(result.exit_code))


def chosen_cases(cases: tuple[Case, ...], wanted: tuple[str, ...]) -> tuple[Case, ...]:
    """Cases by id or by fault, all when nothing is asked for; UsageError for a name that is neither."""
    names = {name for case in cases for name in (case.id, case.plant) if name}
    if unknown := sorted(set(wanted) - names):
        raise UsageError(
            f"--fault {', '.join(unknown)}: expected an id of the catalogue (T01) or a fault that it plants"
        )
    return tuple(case for case in cases if not wanted or case.id in wanted or case.plant in wanted)

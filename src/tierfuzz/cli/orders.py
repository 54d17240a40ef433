"""tierfuzz orders: fuzz event orders against a consumer, and shrink what it gets wrong."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tierfuzz.program import WRITE_POLICIES


@click.command(context_settings={"show_default": True})
@click.option("--consumer", required=True, help="Which consumer to try, by name.")
@click.option("--plant", multiple=True, help="Plant a fault in it: a name or file.py:Class.")
@click.option("--policy", type=click.Choice([*WRITE_POLICIES, "all"]), default="all", help="Write policy.")
@click.option(
    "--family",
    multiple=True,
    help="Try a family of illegal orders as well ('all': each of them); docs/orders.md lists them.",
)
@click.option(
    "--reading",
    type=click.Choice(["either", "counts", "sets"]),
    default="either",
    help="What is right where a block is stored twice.",
)
@click.option("--max-examples", type=click.IntRange(1), default=300, help="Most streams a policy and family.")
@click.option("--seed", type=int, default=0, help="Same seed, same streams.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="tierfuzz-out",
    help="Folder for minimal streams, made only when something is wrong.",
)
@click.option("--json", "json_", is_flag=True, help="Print one JSON array and nothing else.")
def orders(**given: Any) -> None:
    """Deliver histories that an engine may send to a consumer, and compare every answer with the ledger.

    Exit codes: 0 every answer was right, 1 some were wrong, 2 wrong usage.
    """
    from tierfuzz.cli.order_campaign import execute  # imported late: help should not wait for it

    sys.exit(int(execute(given)))

"""tierfuzz run: the options of a campaign against workers that it starts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tierfuzz.model.rules import PROFILES
from tierfuzz.program import WRITE_POLICIES

_COUNT = click.IntRange(1)


@click.command(context_settings={"show_default": True})
@click.option("--engine", default="sim", help="What to test; sim needs nothing else.")
@click.option("--engine-version", default="", show_default="the engine's own", help="Real engines: version.")
@click.option("--cuda-graphs", is_flag=True, help="Real engines: with CUDA graphs (GPU only).")
@click.option("--no-overlap", is_flag=True, help="Real engines: without overlap scheduling.")
@click.option(
    "--weights",
    type=click.Choice(["dummy", "random"]),
    default="dummy",
    help="Real engines: random weights compare contents, by log probabilities.",
)
@click.option("--layers", type=click.IntRange(0), default=0, help="Real engines: of the model; 0: as suits.")
@click.option(
    "--engine-arg", multiple=True, help="Real engines: one more word of the command line; repeatable."
)
@click.option("--worker", multiple=True, help="URL of a worker that runs already; repeatable.")
@click.option("--events", multiple=True, help="Its events endpoint, tcp://…, where it does not say.")
@click.option("--replay", multiple=True, help="Its replay endpoint, where it does not say.")
@click.option("--allow-destructive", is_flag=True, help="Attached workers may be emptied and changed.")
@click.option("--policy", type=click.Choice([*WRITE_POLICIES, "all"]), default="all", help="Write policy.")
@click.option(
    "--profile",
    type=click.Choice(sorted(PROFILES)),
    default="default",
    help="Simulated worker: which version's known defects it has; default: none.",
)
@click.option("--workers", type=click.IntRange(1, 16), default=2, help="Worker processes.")
@click.option("--max-examples", type=_COUNT, default=25, help="Cases a policy.")
@click.option("--steps", type=click.IntRange(2), default=30, help="Operations a case.")
@click.option("--seed", type=int, default=0, help="Same seed, same operations.")
@click.option(
    "--plant", multiple=True, help="Plant a fault: a name (see `tierfuzz faults`) or file.py:Class."
)
@click.option(
    "--consumer",
    default="",
    show_default="none",
    help="Judge a router or index that hears the workers' events: reference, tier-blind.",
)
@click.option("--page-size", type=_COUNT, default=16, help="Tokens a page.")
@click.option("--device-tokens", type=_COUNT, default=1024, help="Device pool of a worker.")
@click.option("--host-ratio", type=click.FloatRange(0.1), default=3.0, help="Host pool over device pool.")
@click.option("--chunked-prefill-size", type=int, default=8192, help="Tokens; 0: no limit.")
@click.option(
    "--ack-delay-ms",
    type=click.FloatRange(0),
    default=0.0,
    help="Copies land later: simulated worker after 0 to this long, sglang-cpu after this long.",
)
@click.option(
    "--storage-threshold",
    type=click.IntRange(0),
    default=0,
    help="Give each worker a storage tier; fewest tokens worth a prefetch (0: none).",
)
@click.option(
    "--ranks",
    type=click.IntRange(1, 8),
    default=1,
    help="Simulated worker: data-parallel ranks of each, with caches and event sockets of their own.",
)
@click.option(
    "--patience-s",
    type=click.FloatRange(0),
    default=0.0,
    help="Seconds until a reply, a flush or rest counts as not coming (0: as long as suits the engine).",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    show_default="tierfuzz-out, made only when something fails",
    help="Folder for programs of failing cases, journals, logs, result.json.",
)
@click.option(
    "--shrink/--no-shrink",
    default=True,
    help="Make the first failing case of each oracle small, within 20 s.",
)
@click.option(
    "--known",
    multiple=True,
    help="Known defects that do not fail the run: a file, or the name of one that comes with tierfuzz.",
)
@click.option("--json", "json_", is_flag=True, help="Print one JSON object and nothing else.")
def run(**given: Any) -> None:
    """Fuzz a fleet under one or all write policies.

    Exit codes: 0 every verdict held, 1 violation, 2 wrong usage, 3 environment, 4 vacuous, 130 Ctrl-C.
    """
    from tierfuzz.cli.campaign import execute  # imported late: help should not wait for it

    sys.exit(int(execute(given)))

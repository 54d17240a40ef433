"""The command line of the simulated worker: the engine's own flags, and --sim-* for what only it can do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from tierfuzz.program import WRITE_POLICIES
from tierfuzz.sim.resolve import IGNORED, IGNORED_SWITCHES, resolve

_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _only(supported: str, why: str) -> Callable[[click.Context, click.Parameter, str], str]:
    """A callback that refuses every value but `supported`, and says why."""

    def check(_: click.Context, param: click.Parameter, value: str) -> str:
        if value != supported:
            message = f"{value!r}: the simulated worker knows {supported!r} only, {why}"
            raise click.BadParameter(message, param=param)
        return value

    return check


_LRU = _only("lru", "as the rules of the other policies are not modelled")
_FCFS = _only("fcfs", "as the others match the whole queue in each pass, which refreshes ages")
_COUNT = click.IntRange(min=1)
_DELAY = click.FloatRange(min=0)

_ENGINE: tuple[_Decorator, ...] = (
    click.option("--host", default="127.0.0.1", help="Loopback addresses only."),
    click.option("--port", type=click.IntRange(0, 65535), default=30000, help="0: any free one."),
    click.option("--page-size", type=_COUNT, default=1),
    click.option("--max-total-tokens", type=_COUNT, default=8192, help="Device pool; cut to whole pages."),
    click.option("--max-running-requests", type=_COUNT, default=256),
    click.option("--chunked-prefill-size", type=int, default=8192, help="0 or less: no limit."),
    click.option("--radix-eviction-policy", default="lru", callback=_LRU, expose_value=False),
    click.option("--schedule-policy", default="fcfs", callback=_FCFS, expose_value=False),
    click.option("--disable-overlap-schedule", is_flag=True),
    click.option("--decode-log-interval", type=_COUNT, default=40, help="Also a publish point."),
    click.option("--kv-events-config", help='JSON with at least {"publisher":"zmq"}.'),
    click.option("--enable-cache-report", is_flag=True, help="Fills usage.prompt_tokens_details."),
    click.option("--enable-metrics", is_flag=True, help="Serves /metrics."),
    click.option(
        "--dp-size",
        "--data-parallel-size",
        "dp_size",
        type=_COUNT,
        default=1,
        help="Ranks: caches of their own behind one HTTP port, events at base port + rank.",
    ),
    click.option("--admin-api-key", help="Needed by /hicache/storage-backend."),
    click.option("--served-model-name", help="Default: the model path."),
)

_HICACHE: tuple[_Decorator, ...] = (
    click.option("--enable-hierarchical-cache", "--enable-hicache", "hierarchical", is_flag=True),
    click.option("--hicache-ratio", type=click.FloatRange(min=0, min_open=True), default=2.0),
    click.option(
        "--hicache-size", type=click.IntRange(min=0), default=0, help="GB; over 0 it replaces the ratio."
    ),
    click.option("--hicache-write-policy", type=click.Choice(WRITE_POLICIES), default="write_through"),
    click.option("--hicache-storage-backend", help="file, or none."),
    click.option("--hicache-storage-prefetch-policy", "storage_policy", default="timeout"),
    click.option("--hicache-storage-backend-extra-config", "storage_extra", help="JSON, or @file."),
)

_OWN: tuple[_Decorator, ...] = (
    click.option("--sim-profile", default="default", help="Which engine's defects to have."),
    click.option("--sim-rule", multiple=True, help="NAME=VALUE: change one rule of the profile; repeatable."),
    click.option("--sim-plant", multiple=True, help="A fault by name, or file.py:Class; repeatable."),
    click.option("--sim-ack-delay-ms", type=_DELAY, default=0.0, help="Copies land up to this much later."),
    click.option("--sim-step-delay-ms", type=_DELAY, default=0.0, help="Time that a forward pass takes."),
    click.option(
        "--sim-publish-delay-ms", type=_DELAY, default=0.0, help="Batches leave up to this much later."
    ),
    click.option(
        "--sim-output-reserve",
        type=click.IntRange(min=0),
        default=4096,
        help="Most outputs of a request that admission keeps room for; with less, requests get retracted.",
    ),
    click.option("--sim-seed", type=int, default=0, help="Seed of the random delays."),
)

_IGNORED: tuple[_Decorator, ...] = (
    *(
        click.option(name, default=default, help=f"Accepted and ignored: {why}.")
        for name, default, why in IGNORED
    ),
    *(click.option(name, is_flag=True, help="Accepted and ignored.") for name in IGNORED_SWITCHES),
)


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed((*_ENGINE, *_HICACHE, *_OWN, *_IGNORED)):
        function = option(function)
    return function


@click.command(name="sim", context_settings={"show_default": True})
@_options
def command(**given: Any) -> None:
    """Serve a simulated worker: SGLang's flags, HTTP surface and KV events, without a GPU."""
    options = resolve(given)
    from tierfuzz.sim.main import serve  # imported late: a wrong flag should not wait for it

    raise SystemExit(serve(options))

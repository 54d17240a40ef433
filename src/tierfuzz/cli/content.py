"""tierfuzz content: compare answers from the cache with cold ones."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from tierfuzz.model.rules import PROFILES
from tierfuzz.program import WRITE_POLICIES

_COUNT = click.IntRange(1)
_SECONDS = click.FloatRange(0)
# what `tierfuzz run` asks for and a content campaign decides itself
_FIXED = {
    "worker": (),
    "workers": 1,
    "weights": "random",
    "ranks": 1,
    "patience_s": 0.0,
    "chunked_prefill_size": 8192,
}
LAYERS = {"sglang": 36}


@click.command(context_settings={"show_default": True})
@click.option("--engine", default="sim", help="What to test; sim needs nothing else.")
@click.option("--engine-version", default="", show_default="the engine's own", help="Real engines: version.")
@click.option("--policy", type=click.Choice(WRITE_POLICIES), default="write_through", help="Write policy.")
@click.option("--page-size", type=_COUNT, default=16, help="Tokens a page.")
@click.option("--device-tokens", type=_COUNT, default=768, help="Device pool.")
@click.option("--host-ratio", type=click.FloatRange(1), default=4.0, help="Host pool over device pool.")
@click.option("--storage-threshold", type=click.IntRange(0), default=0, help="Ask from storage too; 0: none.")
@click.option("--layers", type=click.IntRange(0), default=0, help="Of the model; 0: as suits the engine.")
@click.option("--cuda-graphs/--no-cuda-graphs", default=None, help="Default: wherever there is a GPU.")
@click.option("--no-overlap", is_flag=True, help="Real engines: without overlap scheduling.")
@click.option("--engine-arg", multiple=True, help="Real engines: one more word of the command line.")
@click.option("--talk-s", type=_SECONDS, default=60.0, help="Seconds of conversations, one at a time.")
@click.option("--load-s", type=_SECONDS, default=60.0, help="Seconds of probes beside decodes.")
@click.option("--decoders", type=_COUNT, default=5, help="Decoding side by side.")
@click.option("--probers", type=_COUNT, default=3, help="Probing beside them.")
@click.option("--pause-ms", type=_SECONDS, default=4.0, help="Longest pause of a prober.")
@click.option("--seed", type=int, default=0, help="Same seed, same conversations.")
@click.option("--plant", multiple=True, help="Plant a fault in the simulated worker.")
@click.option("--profile", type=click.Choice(sorted(PROFILES)), default="default", help="Simulated worker.")
@click.option("--step-delay-ms", type=_SECONDS, default=0.0, help="Simulated worker: a step takes that long.")
@click.option("--ack-delay-ms", type=_SECONDS, default=0.0, help="Copies land later.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for content.json and logs."
)
@click.option("--json", "json_", is_flag=True, help="Print one JSON object and nothing else.")
def content(**given: Any) -> None:
    """Compare answers from device, host and storage with cold ones.

    Exit codes: 0 none is wrong, 1 wrong contents, 2 wrong usage, 3 environment, 4 vacuous.
    """
    sys.exit(_execute(given))


def _execute(given: dict[str, Any]) -> int:
    from rich.console import Console

    from tierfuzz.campaign_content import run_content
    from tierfuzz.report.content import as_json, print_content

    console = Console(quiet=given["json_"])
    logs = Path(tempfile.mkdtemp(prefix="tierfuzz-content-"))
    try:
        result = run_content(
            _config(given, logs), lambda text: console.print(text, highlight=False, soft_wrap=True)
        )
        print_content(console, result)
        _keep(given["out"], as_json(result))
    finally:
        if given["out"] is not None and logs.exists():
            shutil.copytree(logs, given["out"] / "logs", dirs_exist_ok=True)
        shutil.rmtree(logs, ignore_errors=True)
    if given["json_"]:
        click.echo(as_json(result))
    return int(result.exit_code)


def _keep(folder: Path | None, text: str) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "content.json").write_text(text + "\n")


def _config(given: dict[str, Any], logs: Path) -> Any:
    import msgspec

    from tierfuzz.campaign_content import ContentConfig
    from tierfuzz.cli.campaign import fleet_of
    from tierfuzz.contents.traffic import Load

    engine = given["engine"]
    asked = given["cuda_graphs"]
    graphs = engine == "sglang" if asked is None else asked
    layers = given["layers"] or LAYERS.get(engine, 0)
    fleet = fleet_of({**given, **_FIXED, "cuda_graphs": graphs, "layers": layers})
    fleet = msgspec.structs.replace(fleet, policy=given["policy"], step_delay_ms=given["step_delay_ms"])
    load = Load(given["decoders"], given["probers"], pause_s=given["pause_ms"] / 1000)
    return ContentConfig(fleet, given["talk_s"], given["load_s"], load, given["seed"], logs)

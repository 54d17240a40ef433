"""The command line: one module a command, imported only when it is used."""

from __future__ import annotations

import importlib
import sys
import traceback
from typing import Any, NamedTuple

import click

from tierfuzz import __version__


class _Command(NamedTuple):
    """Where a command is, and its line in `tierfuzz --help` (so that help imports none of them)."""

    place: str
    summary: str


COMMANDS = {
    "run": _Command("tierfuzz.cli.run:run", "Fuzz a fleet under one or all write policies."),
    "replay": _Command("tierfuzz.cli.replay:replay", "Run a program, a journal or a violation again."),
    "shrink": _Command("tierfuzz.cli.shrink:shrink", "Make a failing program, or event stream, small."),
    "bench": _Command("tierfuzz.cli.bench:bench", "Plant the known faults, and see what is found."),
    "content": _Command("tierfuzz.cli.content:content", "Compare answers from the cache with cold ones."),
    "orders": _Command("tierfuzz.cli.orders:orders", "Fuzz event orders against a consumer of events."),
    "conform": _Command("tierfuzz.cli.conform:conform", "Hold recordings of real engines against the model."),
    "sim": _Command("tierfuzz.sim.options:command", "Serve a simulated worker, with the engine's own flags."),
    "engine": _Command(
        "tierfuzz.cli.engine:engine", "Install real engines that need no GPU, or remove them."
    ),
    "doctor": _Command(
        "tierfuzz.cli.doctor:doctor", "Look at a running worker, or at this machine, before a run."
    ),
    "oracles": _Command("tierfuzz.cli.lists:oracles", "List the oracles: slug, scope and what each says."),
    "faults": _Command("tierfuzz.cli.lists:faults", "List the faults that --plant knows."),
}


class _LazyGroup(click.Group):
    """Loads a command when it is called; an error on purpose becomes one message and its exit code."""

    def list_commands(self, _: click.Context) -> list[str]:
        """Names, in the order of use."""
        return list(COMMANDS)

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        """The command of a name, or None."""
        if name not in COMMANDS:
            return None
        module, attribute = COMMANDS[name].place.split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in COMMANDS.items()])

    def invoke(self, context: click.Context) -> Any:
        """Run; what ends a command is said in one line, and decides the exit code."""
        from tierfuzz.errors import ExitCode, TierfuzzError

        try:
            return super().invoke(context)
        except TierfuzzError as error:
            if context.params.get("debug"):
                traceback.print_exc()
            click.echo(f"error: {error}", err=True)
            sys.exit(int(error.exit_code))
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            sys.exit(int(ExitCode.INTERRUPTED))


@click.group(cls=_LazyGroup, context_settings={"max_content_width": 100})
@click.version_option(__version__, prog_name="tierfuzz")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(debug: bool) -> None:
    """Fuzz LLM workers whose KV cache has tiers, and check what they say about it."""
    del debug

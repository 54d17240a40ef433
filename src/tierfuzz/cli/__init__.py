"""The command line: one module a command, imported only when it is used."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from tierfuzz import __version__

COMMANDS = {
    "run": "tierfuzz.cli.run:run",
    "replay": "tierfuzz.cli.replay:replay",
    "conform": "tierfuzz.cli.conform:conform",
    "sim": "tierfuzz.sim.options:command",
    "oracles": "tierfuzz.cli.lists:oracles",
    "faults": "tierfuzz.cli.lists:faults",
}


class _LazyGroup(click.Group):
    """Loads a command's module when the command is looked up; TierfuzzError becomes one message."""

    def list_commands(self, _: click.Context) -> list[str]:
        """Names, in the order of use."""
        return list(COMMANDS)

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        """The command of a name, or None."""
        if name not in COMMANDS:
            return None
        module, attribute = COMMANDS[name].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def invoke(self, context: click.Context) -> Any:
        """Run; an error on purpose is printed and decides the exit code."""
        from tierfuzz.errors import TierfuzzError

        try:
            return super().invoke(context)
        except TierfuzzError as error:
            if context.params.get("debug"):
                raise
            click.echo(f"error: {error}", err=True)
            sys.exit(int(error.exit_code))


@click.group(cls=_LazyGroup, context_settings={"max_content_width": 100})
@click.version_option(__version__, prog_name="tierfuzz")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(debug: bool) -> None:
    """Fuzz LLM workers whose KV cache has tiers, and check what they say about it."""
    del debug

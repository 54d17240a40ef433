"""tierfuzz engine: installs, removes and lists real engines that run without a GPU."""

from __future__ import annotations

import click

from tierfuzz.engines.sglang.versions import DEFAULT_VERSION
from tierfuzz.engines.sglang_cpu.environment import CpuEnvironment
from tierfuzz.engines.sglang_cpu.pins import VERSIONS

_name = click.argument("name", type=click.Choice(["sglang-cpu"]))
_version = click.option("--version", default=DEFAULT_VERSION, show_default=True, help="Version of SGLang.")


@click.group()
def engine() -> None:
    """Real engines in environments of their own, in tierfuzz's cache folder."""


@engine.command()
@_name
@_version
def install(name: str, version: str) -> None:
    """Install an engine, or go on where an installation was cut short (3 to 7 GB, a minute or more)."""
    from tierfuzz.engines.sglang_cpu.install import install as install_engine

    environment = CpuEnvironment(version)
    if environment.installed:
        click.echo(f"{name} {version} is installed in {environment.folder}")
        return
    install_engine(environment, click.echo)
    click.echo(f"Installed; try: tierfuzz run --engine {name} --engine-version {version}")


@engine.command()
@_name
@_version
def remove(name: str, version: str) -> None:
    """Remove an engine and all that came with it."""
    environment = CpuEnvironment(version)
    gone = environment.remove()
    click.echo(f"{name} {version} {'removed from' if gone else 'was not installed in'} {environment.folder}")


@engine.command("list")
def list_engines() -> None:
    """List engines that can be installed, and where they are."""
    for version in VERSIONS:
        environment = CpuEnvironment(version)
        partly = environment.folder.exists()
        how = (
            "installed" if environment.installed else "installation cut short" if partly else "not installed"
        )
        click.echo(f"sglang-cpu {version:10} {how:24} {environment.folder}")

"""tierfuzz oracles, tierfuzz faults: what there is, by name."""

from __future__ import annotations

import inspect

import click


@click.command()
def oracles() -> None:
    """List the oracles: slug, scope and what each says."""
    from tierfuzz.oracles.registry import ORACLES

    for oracle in ORACLES.values():
        click.echo(f"{oracle.slug:20} {oracle.scope:8} {oracle.explanation}")


@click.command()
def faults() -> None:
    """List the faults that --plant knows: name, the oracle that notices it, and what it does."""
    from tierfuzz.faults.registry import FAULTS

    for name, fault in sorted(FAULTS.items()):
        summary = (inspect.getdoc(fault) or "").split("\n")[0]
        click.echo(f"{name:26} {fault.oracle:18} {summary} [{fault.source}]")

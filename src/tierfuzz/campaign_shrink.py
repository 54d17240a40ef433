"""Shrinks what a campaign found: the first failing case of each oracle that no small program shows yet."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tierfuzz.campaign_results import Failure, PolicyResult
from tierfuzz.clock import SYSTEM_CLOCK
from tierfuzz.errors import EnvironmentFailure
from tierfuzz.fleet import Fleet
from tierfuzz.runevents import Dispatcher
from tierfuzz.shrink.budget import Limits
from tierfuzz.shrinking import FleetRuns, ShrinkConfig, shrink

AS_LONG_AS = 3  # failures together take at most as long as so many, each with its whole budget


def shrink_failures(
    result: PolicyResult,
    fleet: Fleet,
    whole: ShrinkConfig,
    dispatcher: Dispatcher,
    logs: Path,
) -> None:
    """Give failures their `shrunk`, on the fleet of the campaign. Ctrl-C ends it, and the campaign."""
    started = SYSTEM_CLOCK.monotonic()
    shown: set[str] = set()
    with FleetRuns(logs, fleet) as runs:
        for failure in result.failures:
            verdict = next((verdict for verdict in failure.verdicts if verdict.oracle not in shown), None)
            if verdict is None:
                continue
            config = replace(whole, limits=_left(whole.limits, SYSTEM_CLOCK.monotonic() - started))
            with suppress(EnvironmentFailure):  # what was found is worth more than to make it small
                failure.shrunk = shrink(failure.program, runs, config, verdict, listeners=dispatcher)
            shown |= {verdict.oracle} | shown_by(failure)
            if failure.shrunk is not None and failure.shrunk.result.stopped == "interrupted":
                raise KeyboardInterrupt


def shown_by(failure: Failure) -> set[str]:
    """Oracles that the small program of a failure violates."""
    if failure.shrunk is None or failure.shrunk.ran is None:
        return set()
    return {verdict.oracle for verdict in failure.shrunk.ran.verdicts}


def _left(limits: Limits, spent: float) -> Limits:
    if limits.seconds is None:
        return limits
    return replace(limits, seconds=max(0.0, min(limits.seconds, AS_LONG_AS * limits.seconds - spent)))

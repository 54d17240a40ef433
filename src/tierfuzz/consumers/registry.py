"""Consumers by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tierfuzz.consumers.base import Consumer
from tierfuzz.consumers.reference import Reference, TierBlind
from tierfuzz.errors import UsageError
from tierfuzz.model.faults import Fault

CONSUMERS: dict[str, Callable[[Sequence[Fault]], Consumer]] = {
    "reference": Reference,
    "tier-blind": TierBlind,
}


def make_consumer(name: str, faults: Sequence[Fault] = ()) -> Consumer:
    """A fresh consumer; UsageError names the known ones. Faults wrap the seams that a consumer has."""
    if name not in CONSUMERS:
        raise UsageError(f"unknown consumer {name!r}; expected one of: {', '.join(sorted(CONSUMERS))}")
    return CONSUMERS[name](faults)

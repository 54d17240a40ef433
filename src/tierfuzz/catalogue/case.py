"""One case of the catalogue: where a fault was seen, what shows it, and what is planted for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tierfuzz.program import FleetConfig

Component = Literal["engine tree", "event publisher", "subscriber", "router tree", "accounting", "lifecycle"]
COMPONENTS: tuple[Component, ...] = (
    "engine tree",
    "event publisher",
    "subscriber",
    "router tree",
    "accounting",
    "lifecycle",
)
# Codes of observables: what a person with the right measurements would see.
OBSERVABLES = (
    "HOST0",
    "LEDGER",
    "ORDER",
    "FIELD",
    "GAP",
    "DOUBLE",
    "ORPHAN",
    "LEAK",
    "CRASH",
    "HANG",
    "WRONGWORKER",
    "CONTENT",
    "LIVENESS",
)
DEFAULT_FLEET = FleetConfig(host_ratio=3.0)


@dataclass(frozen=True)
class Case:
    """A known fault. Exactly one of `plant` (its name in tierfuzz.faults) and `reason` (why none) is given.

    `oracles`: slugs of which any one counts as noticing it; `fleet`: where it is reached soon, without the
    plant itself; `source`: the public report.
    """

    id: str
    title: str
    source: str
    component: Component
    observables: tuple[str, ...]
    plant: str = ""
    oracles: tuple[str, ...] = ()
    fleet: FleetConfig = DEFAULT_FLEET
    reason: str = ""

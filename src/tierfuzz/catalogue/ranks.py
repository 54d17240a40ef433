"""Cases of workers that consist of several ranks, each with event sockets of its own."""

from __future__ import annotations

from tierfuzz.catalogue.case import Case
from tierfuzz.program import FleetConfig

_TWO_RANKS = FleetConfig(workers=1, ranks=2, device_tokens=512, host_ratio=3.0)

CASES: tuple[Case, ...] = (
    Case(
        id="T26",
        title="The ranks of a worker share one publisher port, so that only the first is heard",
        source="sgl-project/sglang#29491",
        component="event publisher",
        observables=("CRASH", "LIVENESS"),
        plant="second-rank-unheard",
        oracles=("insert-bound", "ledger-accounting"),
        fleet=_TWO_RANKS,
    ),
)

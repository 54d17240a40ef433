"""Cases of accounting in a router: what it makes of the pages that it finds."""

from __future__ import annotations

from tierfuzz.catalogue.case import Case
from tierfuzz.program import FleetConfig

CASES: tuple[Case, ...] = (
    Case(
        id="T47",
        title="A score that weighs tiers is read as a number of cached blocks",
        source="llm-d/llm-d-router#1047",
        component="accounting",
        observables=("LEDGER", "WRONGWORKER"),
        plant="tier-weight-counts-pages",
        oracles=("router-miss", "wrong-worker"),
        fleet=FleetConfig(host_ratio=3.0, consumer="reference"),
    ),
)

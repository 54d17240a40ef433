"""Cases of subscribers: who hears events, and what gets lost on the way to the tree."""

from __future__ import annotations

from tierfuzz.catalogue.case import Case
from tierfuzz.program import FleetConfig

HEARD = FleetConfig(host_ratio=3.0, consumer="reference")

CASES: tuple[Case, ...] = (
    Case(
        id="T33",
        title="A restarted worker keeps its old blocks in the index, since sequence resets go unnoticed",
        source="llm-d/llm-d-router#2853",
        component="subscriber",
        observables=("GAP", "LEDGER", "WRONGWORKER"),
        plant="sequence-reset-ignored",
        oracles=("router-stale", "router-miss", "wrong-worker"),
        fleet=HEARD,
    ),
    Case(
        id="T34",
        title="After a router restart a store with an unknown parent is dropped, and its children with it",
        source="llm-d/llm-d-kv-cache#372",
        component="subscriber",
        observables=("ORPHAN",),
        plant="orphans-dropped",
        oracles=("router-miss",),
        fleet=FleetConfig(policy="write_back", host_ratio=3.0, consumer="reference"),
    ),
    Case(
        id="T35",
        title="A jump of the sequence is seen, and the missing batches are never asked for",
        source="sgl-project/sglang#32728",
        component="subscriber",
        observables=("GAP", "LEDGER", "WRONGWORKER"),
        plant="gap-ignored",
        oracles=("router-miss", "router-stale", "wrong-worker"),
        fleet=HEARD,
    ),
    Case(
        id="T36",
        title="Stores carry pairs of tokens where tokens are expected, and are all lost",
        source="llm-d/llm-d-kv-cache#603",
        component="subscriber",
        observables=("FIELD",),
        plant="token-pairs",
        oracles=("malformed-event",),
    ),
)

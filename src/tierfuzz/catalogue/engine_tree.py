"""Cases of the engine's tree: what is kept, copied, evicted and brought back."""

from __future__ import annotations

from tierfuzz.catalogue.case import Case

CASES: tuple[Case, ...] = (
    Case(
        id="T01",
        title="A node of a hybrid model is deleted where it should leave the device only",
        source="sgl-project/sglang#33713",
        component="engine tree",
        observables=("HOST0",),
        plant="host-copy-forgotten",
        oracles=("host-miss", "ledger-accounting"),
    ),
    Case(
        id="T08",
        title="Prompts that are prefilled in chunks are never copied to host",
        source="sgl-project/sglang#33714",
        component="engine tree",
        observables=("HOST0", "LIVENESS"),
        plant="no-backup",
        oracles=("no-backup", "host-miss"),
    ),
)

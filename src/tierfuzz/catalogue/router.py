"""Cases of a router's tree: what it believes that workers hold."""

from __future__ import annotations

from tierfuzz.catalogue.case import Case
from tierfuzz.program import FleetConfig

HEARD = FleetConfig(host_ratio=3.0, consumer="reference")
SMALL_HOST = FleetConfig(host_ratio=1.0, consumer="reference")  # host evicts soon

CASES: tuple[Case, ...] = (
    Case(
        id="T37",
        title="A removal from device takes the worker off a page that its host still has",
        source="sgl-project/sglang#39108",
        component="router tree",
        observables=("WRONGWORKER",),
        plant="tier-blind-removal",
        oracles=("wrong-worker", "router-miss"),
        fleet=HEARD,
    ),
    Case(
        id="T38",
        title="A batch with removals from host is lost, and the host claim stays for good",
        source="sgl-project/sglang#38720",
        component="router tree",
        observables=("GAP", "LEDGER"),
        plant="lost-removal-strands-claim",
        oracles=("router-stale", "router-leak"),
        fleet=SMALL_HOST,
    ),
    Case(
        id="T39",
        title="One tier in two spellings: removals do not find what stores have booked",
        source="llm-d/llm-d-kv-cache#592",
        component="router tree",
        observables=("LEDGER",),
        plant="tier-spelled-twice",
        oracles=("router-stale", "router-leak"),
        fleet=HEARD,
    ),
    Case(
        id="T40",
        title="The removal from device deletes the name that events of the host copy need",
        source="llm-d/llm-d-kv-cache#561",
        component="router tree",
        observables=("LEDGER",),
        plant="name-goes-with-device-copy",
        oracles=("router-stale", "wrong-worker"),
        fleet=SMALL_HOST,
    ),
    Case(
        id="T41",
        title="The clear event is only logged",
        source="llm-d/llm-d-kv-cache#626",
        component="router tree",
        observables=("LEDGER", "WRONGWORKER", "LIVENESS"),
        plant="clear-ignored",
        oracles=("router-stale", "router-leak", "wrong-worker"),
        fleet=HEARD,
    ),
    Case(
        id="T42",
        title="A rank that was deregistered keeps its blocks",
        source="ai-dynamo/dynamo#6569",
        component="router tree",
        observables=("WRONGWORKER", "LEAK"),
        plant="dead-rank-keeps-entries",
        oracles=("router-leak",),
        fleet=HEARD,
    ),
)

"""Cases of the event publisher: what is announced of the pages that come and go, when, and in which form."""

from __future__ import annotations

from msgspec.structs import replace

from tierfuzz.catalogue.case import Case
from tierfuzz.program import FleetConfig

# A host pool that is soon turned over: pages are left in storage alone without a flush.
_STORAGE = FleetConfig(workers=1, device_tokens=512, host_ratio=1.25, storage_threshold=16)
_STORAGE_EVENTS = replace(_STORAGE, extra_args=("--sim-rule", "storage_events=true"))
_SLOW_ACKS = FleetConfig(workers=1, host_ratio=3.0, ack_delay_ms=10.0)
# Many prompts end with a page, and answers fill some: both are computed again by whoever repeats them.
_SMALL_PAGES = FleetConfig(workers=1, page_size=4, device_tokens=512, host_ratio=3.0)

CASES: tuple[Case, ...] = (
    Case(
        id="T18",
        title="Pages that come back from storage are on host, and no host store says so",
        source="sgl-project/sglang#38486",
        component="event publisher",
        observables=("DOUBLE", "LEDGER", "WRONGWORKER"),
        plant="refill-unannounced",
        oracles=("unmatched-removal", "ledger-accounting", "leak-at-rest"),
        fleet=_STORAGE,
    ),
    Case(
        id="T19",
        title="A node is split before its host copy is acknowledged: its front is never announced",
        source="sgl-project/sglang#27072",
        component="event publisher",
        observables=("ORPHAN", "LEDGER"),
        plant="ack-keeps-suffix",
        oracles=("no-backup", "ledger-accounting", "unmatched-removal", "leak-at-rest"),
        fleet=_SLOW_ACKS,
    ),
    Case(
        id="T20",
        title="The end of a session frees its pages without removals",
        source="sgl-project/sglang#29750",
        component="event publisher",
        observables=("LEDGER",),
        plant="session-freed-silently",
        oracles=("ledger-accounting", "duplicate-store", "over-capacity"),
    ),
    Case(
        id="T21",
        title="Block hashes cover the tokens of the block alone, and splits publish stores",
        source="sgl-project/sglang#13488",
        component="event publisher",
        observables=("DOUBLE",),
        plant="hash-of-own-tokens",
        oracles=("unexplained-store", "duplicate-store", "orphan-parent"),
    ),
    Case(
        id="T22",
        title="A new tree implementation publishes nothing at all",
        source="sgl-project/sglang#26387",
        component="event publisher",
        observables=("LIVENESS",),
        plant="publishes-nothing",
        oracles=("ledger-accounting", "leak-at-rest"),
    ),
    Case(
        id="T23",
        title="The device removal goes out with the host store, while the device copy stays",
        source="sgl-project/sglang#18209",
        component="event publisher",
        observables=("LEDGER", "DOUBLE"),
        plant="removal-at-backup",
        oracles=("ledger-accounting", "unmatched-removal"),
    ),
    Case(
        id="T24",
        title="A storage store is published before the whole node is written",
        source="sgl-project/sglang#29948",
        component="event publisher",
        observables=("LEDGER",),
        plant="storage-store-at-submission",
        oracles=("storage-claim",),
        fleet=_STORAGE_EVENTS,
    ),
    Case(
        id="T25",
        title="The advertised block size is not the one at which events are cut",
        source="sgl-project/sglang#35298",
        component="event publisher",
        observables=("WRONGWORKER",),
        plant="half-size-advertised",
        oracles=("advertised-size",),
    ),
    Case(
        id="T27",
        title="A replay to a slow reader is cut off without an end mark",
        source="sgl-project/sglang#38945",
        component="event publisher",
        observables=("GAP", "HANG"),
        plant="replay-truncated",
        oracles=("sequence-gap",),
    ),
    Case(
        id="T28",
        title="A removal is published for one of two physical copies of a block",
        source="vllm-project/vllm#55092",
        component="event publisher",
        observables=("LEDGER", "DOUBLE"),
        plant="second-copy-removed",
        oracles=("ledger-accounting", "unmatched-removal"),
        fleet=_SMALL_PAGES,
    ),
    Case(
        id="T29",
        title="A reset of the device alone is published as the end of every tier",
        source="vllm-project/vllm#57296",
        component="event publisher",
        observables=("LEDGER",),
        plant="device-reset-clears-all",
        oracles=("ledger-accounting", "unmatched-removal", "leak-at-rest"),
    ),
    Case(
        id="T30",
        title="Host stores without tokens, parent and block size",
        source="vllm-project/vllm#43468",
        component="event publisher",
        observables=("FIELD",),
        plant="host-store-blank",
        oracles=("malformed-event",),
    ),
    Case(
        id="T31",
        title="Nothing is published for what stood below an evicted block",
        source="NVIDIA/TensorRT-LLM#16335",
        component="event publisher",
        observables=("LEAK",),
        plant="descendant-removal-lost",
        oracles=("over-capacity", "ledger-accounting", "duplicate-store"),
    ),
    Case(
        id="T32",
        title="One medium a block: other copies are not announced, the removal is published twice",
        source="kvcache-ai/Mooncake#3818",
        component="event publisher",
        observables=("DOUBLE", "FIELD"),
        plant="one-medium-per-block",
        oracles=("no-backup", "ledger-accounting", "unmatched-removal"),
    ),
)

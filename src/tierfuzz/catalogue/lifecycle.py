"""Cases of the life of workers, copies and locks: idle times, flushes, aborts, kills, full pools."""

from __future__ import annotations

from tierfuzz.catalogue.case import Case
from tierfuzz.program import FleetConfig

_SMALL = FleetConfig(workers=1, device_tokens=512, host_ratio=3.0)
_WRITE_BACK = FleetConfig(workers=1, device_tokens=512, host_ratio=3.0, policy="write_back")
# A simulated worker answers in milliseconds: what has not come after a second does not come.
_IMPATIENT = FleetConfig(workers=1, device_tokens=512, host_ratio=3.0, patience_s=1.0)
_TIGHT = FleetConfig(workers=1, device_tokens=128, host_ratio=3.0, patience_s=1.0)
_DECODING = FleetConfig(
    workers=1,
    device_tokens=160,
    host_ratio=3.0,
    patience_s=1.0,
    extra_args=("--sim-output-reserve", "0"),
)
# Reads from storage take a while, so that an abort or another request can come in between.
_FETCHING = FleetConfig(workers=1, device_tokens=256, host_ratio=3.0, storage_threshold=16, ack_delay_ms=10.0)

CASES: tuple[Case, ...] = (
    Case(
        id="T48",
        title="Without traffic neither acks are handled nor events published",
        source="sgl-project/sglang#20560",
        component="lifecycle",
        observables=("LIVENESS", "HANG"),
        plant="idle-engine-sleeps",
        oracles=("hang", "no-backup"),
        fleet=_IMPATIENT,
    ),
    Case(
        id="T49",
        title="While requests only decode, pages whose copies are done stay locked",
        source="sgl-project/sglang#20049",
        component="lifecycle",
        observables=("LEAK", "HANG"),
        plant="acks-wait-for-prefill",
        oracles=("hang", "leak-at-rest"),
        fleet=_DECODING,
    ),
    Case(
        id="T50",
        title="A rank without copies under way skips the collective that the other rank waits in",
        source="sgl-project/sglang#26921",
        component="lifecycle",
        observables=("HANG", "LEAK"),
        plant="collective-skipped",
        oracles=("hang",),
        fleet=_IMPATIENT,
    ),
    Case(
        id="T51",
        title="A flush forgets the tree and not the host slots that it held",
        source="sgl-project/sglang#23216",
        component="lifecycle",
        observables=("LEAK", "HOST0"),
        plant="flush-leaks-host",
        oracles=("leak-at-rest", "no-backup", "host-miss"),
        fleet=_SMALL,
    ),
    Case(
        id="T52",
        title="A flush is refused although the worker is at rest",
        source="sgl-project/sglang#21413",
        component="lifecycle",
        observables=("LEDGER", "LIVENESS"),
        plant="flush-refused-for-ever",
        oracles=("hang",),
        fleet=_IMPATIENT,
    ),
    Case(
        id="T53",
        title="A request that is aborted keeps the host slots of its prefetch",
        source="sgl-project/sglang#9874",
        component="lifecycle",
        observables=("LEAK",),
        plant="abort-keeps-prefetch",
        oracles=("leak-at-rest",),
        fleet=_FETCHING,
    ),
    Case(
        id="T54",
        title="The part of a prefetch that was not needed is given back twice",
        source="sgl-project/sglang#13483",
        component="lifecycle",
        observables=("LEDGER", "CONTENT"),
        plant="prefetch-freed-twice",
        oracles=("leak-at-rest", "over-capacity", "content"),
        fleet=_FETCHING,
    ),
    Case(
        id="T55",
        title="Under write_back acks unlock nodes that were never locked",
        source="bytedance-iaas/sglang#748",
        component="lifecycle",
        observables=("LEDGER",),
        plant="unlock-without-lock",
        oracles=("leak-at-rest", "pool-levels"),
        fleet=_WRITE_BACK,
    ),
    Case(
        id="T56",
        title="A killed worker holds its port and its pinned host pool for some time",
        source="sgl-project/sglang#31746",
        component="lifecycle",
        observables=("CRASH", "HANG"),
        reason="No worker misbehaves; the next start would, if it blamed the new one. A restart waits until "
        "the ports of the old one are free, and names it when they are not in time.",
    ),
    Case(
        id="T57",
        title="Two requests hold what was loaded for them, and neither gets the rest",
        source="vllm-project/vllm#45388",
        component="lifecycle",
        observables=("HANG",),
        plant="loads-hold-blocks",
        oracles=("hang",),
        fleet=_TIGHT,
    ),
)

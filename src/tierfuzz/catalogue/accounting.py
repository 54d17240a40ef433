"""Cases of the accounting: what a reply says of its cached tokens, and what a reset leaves behind."""

from __future__ import annotations

from tierfuzz.catalogue.case import Case
from tierfuzz.program import FleetConfig

_SMALL = FleetConfig(workers=1, device_tokens=512, host_ratio=3.0)
_CHUNKED = FleetConfig(workers=1, device_tokens=512, host_ratio=3.0, chunked_prefill=32)
# Pages so small that a host part of one or two is not worth a load-back (reference 5.6).
_DECLINING = FleetConfig(workers=1, page_size=4, device_tokens=128, host_ratio=3.0)
# Admission keeps no room for outputs, so that decode runs out of it.
_RETRACTING = FleetConfig(
    workers=1, device_tokens=160, host_ratio=3.0, extra_args=("--sim-output-reserve", "0")
)

CASES: tuple[Case, ...] = (
    Case(
        id="T43",
        title="A request that was retracted counts its cached tokens again when it comes back",
        source="sgl-project/sglang#11900",
        component="accounting",
        observables=("LEDGER",),
        plant="cached-added-again",
        oracles=("phantom-hit", "split-sum", "overlap-excess"),
        fleet=_RETRACTING,
    ),
    Case(
        id="T44",
        title="A prompt that is prefilled in chunks has its tier split added once a chunk",
        source="sgl-project/sglang#26976",
        component="accounting",
        observables=("LEDGER",),
        plant="split-counted-per-chunk",
        oracles=("split-sum",),
        fleet=_CHUNKED,
    ),
    Case(
        id="T45",
        title="The tier split credits a load-back that was declined",
        source="sgl-project/sglang#37503",
        component="accounting",
        observables=("LEDGER",),
        plant="declined-load-credited",
        oracles=("split-sum", "ledger-accounting"),
        fleet=_DECLINING,
    ),
    Case(
        id="T46",
        title="A reset answers success, and the host tier goes on serving",
        source="vllm-project/vllm#57727",
        component="accounting",
        observables=("LEDGER",),
        plant="flush-keeps-host",
        oracles=("clear-scope", "phantom-hit", "ledger-accounting"),
        fleet=_SMALL,
    ),
)

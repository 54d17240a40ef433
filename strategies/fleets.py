"""Fleet configurations of simulated workers."""

from __future__ import annotations

from hypothesis import strategies as st

from tierfuzz.program import WRITE_POLICIES, FleetConfig

PAGE_SIZES = (16, 64)
DEVICE_PAGES = (48, 64)
HOST_RATIOS = (1.0, 2.0, 4.0)
ACK_DELAYS_MS = (0.0, 2.0)
NO_PLANTS: st.SearchStrategy[tuple[str, ...]] = st.just(())


@st.composite
def fleets(
    draw: st.DrawFn, workers: int = 2, plants: st.SearchStrategy[tuple[str, ...]] = NO_PLANTS
) -> FleetConfig:
    """Small fleets: page sizes, pool sizes and ratios at which everything of the tiers happens quickly.

    `plants`: which faults, see tierfuzz.strategies.faults.
    """
    page = draw(st.sampled_from(PAGE_SIZES))
    return FleetConfig(
        policy=draw(st.sampled_from(WRITE_POLICIES)),
        workers=workers,
        page_size=page,
        device_tokens=page * draw(st.sampled_from(DEVICE_PAGES)),
        host_ratio=draw(st.sampled_from(HOST_RATIOS)),
        ack_delay_ms=draw(st.sampled_from(ACK_DELAYS_MS)),
        plants=draw(plants),
        seed=draw(st.integers(0, 1000)),
    )

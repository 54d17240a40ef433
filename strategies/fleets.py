"""Fleet configurations of simulated workers."""

from __future__ import annotations

from hypothesis import strategies as st

from tierfuzz.program import WRITE_POLICIES, FleetConfig


def fleets() -> st.SearchStrategy[FleetConfig]:
    """Small fleets: page sizes, pool sizes and ratios at which everything of the tiers happens quickly."""

    def build(policy: int, page: int, pages: int, ratio: float, delay: float, seed: int) -> FleetConfig:
        return FleetConfig(
            policy=WRITE_POLICIES[policy],
            page_size=page,
            device_tokens=page * pages,
            host_ratio=ratio,
            ack_delay_ms=delay,
            seed=seed,
        )

    return st.builds(
        build,
        st.integers(0, len(WRITE_POLICIES) - 1),
        st.sampled_from((16, 64)),
        st.sampled_from((48, 64)),
        st.sampled_from((1.0, 2.0, 4.0)),
        st.sampled_from((0.0, 2.0)),
        st.integers(0, 1000),
    )

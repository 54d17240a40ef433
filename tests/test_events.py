"""Media and the tiers they stand for."""

from __future__ import annotations

import pytest

from tierfuzz.events import BlockRemoved, BlockStored, Tier, tier_of


@pytest.mark.parametrize(
    ("medium", "tier"),
    [
        (None, Tier.DEVICE),
        ("GPU", Tier.DEVICE),
        ("CPU", Tier.HOST),
        ("CPU_PINNED", Tier.HOST),
        ("CPU_TIER1", Tier.HOST),
        ("CPU_TIER2", Tier.HOST),
        ("DISK", Tier.STORAGE),
        ("EXTERNAL", Tier.EXTERNAL),
        ("gpu", Tier.UNKNOWN),
        ("", Tier.UNKNOWN),
        ("CPU_TIER3", Tier.UNKNOWN),
    ],
)
def test_every_spelling_of_a_medium_has_its_tier(medium: str | None, tier: Tier) -> None:
    assert tier_of(medium) is tier
    assert BlockStored((1,), None, (), 16, medium).tier is tier
    assert BlockRemoved((1,), medium).tier is tier

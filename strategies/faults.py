"""Planted faults, by the names that a fleet configuration takes."""

from __future__ import annotations

from hypothesis import strategies as st

from tierfuzz.faults.registry import FAULTS

MOST_PLANTS = 2


def plants(most: int = MOST_PLANTS) -> st.SearchStrategy[tuple[str, ...]]:
    """0 to `most` different faults of the registry; none is the simplest."""
    names = st.sampled_from(sorted(FAULTS))
    return st.lists(names, max_size=most, unique=True).map(tuple)

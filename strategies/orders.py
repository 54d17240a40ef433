"""Histories of page trees: legal ones of every policy and engine, and the labelled illegal families apart."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from tierfuzz.orders.causality import FAMILIES, discipline_of
from tierfuzz.orders.play import Draw, Setting, played
from tierfuzz.orders.stream import Stream
from tierfuzz.program import WRITE_POLICIES, WritePolicy

PROFILES = ("sglang-0.5.17", "sglang-0.5.23")
SHORTEST, LONGEST = 6, 40  # draws of a history
# How often, against each other; the simplest first.
LEGAL = (
    *["insert"] * 10,
    *["clear"] * 2,
    *["back-up"] * 8,
    *["evict-device"] * 8,
    *["load-back"] * 6,
    *["evict-host"] * 5,
    *["restart"] * 2,
)
ONE_WORKER = Setting()
TWO_TENANTS = Setting(namespaces=("", "tenant-a"))
TWO_WORKERS = Setting(sources=((0, 0), (1, 0)))
TWO_RANKS = Setting(sources=((0, 0), (0, 1)))
SETTINGS = (ONE_WORKER, ONE_WORKER, TWO_TENANTS, TWO_WORKERS, TWO_RANKS)


def draws(acts: Sequence[str]) -> st.SearchStrategy[list[Draw]]:
    """What happens, in order."""
    one = st.builds(
        Draw,
        st.sampled_from(acts),
        pick=st.integers(0, 63),
        pages=st.integers(0, 3),
        apart=st.booleans(),
        source=st.integers(0, 1),
        namespace=st.integers(0, 1),
    )
    return st.lists(one, min_size=SHORTEST, max_size=LONGEST)


@st.composite
def legal_histories(draw: st.DrawFn, policy: WritePolicy | None = None) -> Stream:
    """What a healthy engine may send under a policy (None: any)."""
    chosen = policy or draw(st.sampled_from(WRITE_POLICIES))
    profile = draw(st.sampled_from(PROFILES))
    setting = draw(st.sampled_from(SETTINGS))
    return played(discipline_of(chosen, profile), setting, draw(draws(LEGAL)), profile)


@st.composite
def stray_histories(draw: st.DrawFn, family: str, policy: WritePolicy | None = None) -> Stream:
    """Histories in which some steps are of this family of illegal orders, and none of another."""
    assert family in FAMILIES
    chosen = policy or draw(st.sampled_from(WRITE_POLICIES))
    profile = draw(st.sampled_from(PROFILES))
    setting = Setting(strays=frozenset({family}))
    acts = (*LEGAL, *["stray"] * 12)
    return played(discipline_of(chosen, profile), setting, draw(draws(acts)), profile)

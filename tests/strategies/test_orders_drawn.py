"""Histories as drawn: legal by the rules, rich enough, and the illegal families apart."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tierfuzz.events import AllBlocksCleared, BlockRemoved, BlockStored
from tierfuzz.orders.causality import FAMILIES
from tierfuzz.orders.legality import explain, families
from tierfuzz.orders.stream import Restarted, Sent, Stream
from tierfuzz.program import WRITE_POLICIES, WritePolicy
from tierfuzz.strategies.orders import legal_histories, stray_histories

DRAWN = settings(
    max_examples=120,
    phases=(Phase.generate,),
    database=None,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@lru_cache
def drawn(policy: WritePolicy) -> list[Stream]:
    """Legal histories of a policy."""
    found: list[Stream] = []

    @DRAWN
    @given(legal_histories(policy))
    def each(stream: Stream) -> None:
        found.append(stream)

    each()
    return found


def kinds(stream: Stream) -> Counter[str]:
    """Events by kind and tier."""
    found: Counter[str] = Counter()
    for entry in stream.entries:
        for event in entry.events if isinstance(entry, Sent) else ():
            if isinstance(event, BlockStored | BlockRemoved):
                found[f"{type(event).__name__} {event.tier}"] += 1
            elif isinstance(event, AllBlocksCleared):
                found["clear"] += 1
        found["restart"] += isinstance(entry, Restarted)
    return found


@pytest.mark.parametrize("policy", WRITE_POLICIES)
def test_legal_histories_are_legal_and_everything_happens_in_them(policy: WritePolicy) -> None:
    streams = drawn(policy)
    assert [explain(stream) for stream in streams if explain(stream)] == []
    happened = sum((kinds(stream) for stream in streams), Counter())
    assert (
        min(happened[kind] for kind in ("BlockStored host", "BlockRemoved host", "BlockRemoved device")) > 10
    )
    assert min(happened[kind] for kind in ("clear", "restart", "BlockStored device")) > 5
    assert {len({entry.worker for entry in stream.entries}) for stream in streams} >= {1, 2}
    assert any(
        "tenant-a" in entry.namespaces for s in streams for entry in s.entries if isinstance(entry, Sent)
    )


def test_the_policies_differ_in_their_orders() -> None:
    through, back = WRITE_POLICIES[:2]
    for policy, other in ((through, back), (back, through)):
        foreign = [explain(stream, other) for stream in drawn(policy)]
        assert sum(illegal is not None for illegal in foreign) > 15


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_illegal_in_its_own_way_only(family: str) -> None:
    found: Counter[frozenset[str]] = Counter()

    @DRAWN
    @given(stray_histories(family))
    def each(stream: Stream) -> None:
        found[families(stream)] += 1

    each()
    assert set(found) <= {frozenset(), frozenset({family})}
    assert found[frozenset({family})] > 20

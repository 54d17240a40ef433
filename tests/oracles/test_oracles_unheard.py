"""Pages of finished requests that no event has ever named."""

from __future__ import annotations

from tierfuzz.events import BlockRemoved, BlockStored
from tierfuzz.oracles.docket import Docket
from tierfuzz.oracles.unheard import Unheard


def stored(block: int) -> BlockStored:
    """A block comes to the device."""
    return BlockStored((block,), None, (1, 2), 2, "GPU")


def test_pages_that_no_event_names_are_a_violation_once() -> None:
    docket = Docket(0)
    unheard = Unheard(docket)
    unheard.completed((1, 2), "a")
    unheard.follow(stored(1))
    unheard.check()
    unheard.check()
    (verdict,) = docket.take()
    assert (verdict.oracle, verdict.operation, verdict.facts["missing"]) == ("insert-bound", "a", 1)


def test_pages_that_were_named_are_fine_whatever_became_of_them() -> None:
    docket = Docket(0)
    unheard = Unheard(docket)
    unheard.follow(stored(1))
    unheard.follow(BlockRemoved((1,), "GPU"))
    unheard.completed((1,), "a")
    unheard.check()
    assert docket.take() == []


def test_after_a_flush_pages_have_to_be_named_again() -> None:
    docket = Docket(0)
    unheard = Unheard(docket)
    unheard.follow(stored(1))
    unheard.clear()
    unheard.completed((1,), "a")
    unheard.check()
    assert [verdict.oracle for verdict in docket.take()] == ["insert-bound"]

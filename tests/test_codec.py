"""One wrong value anywhere in an event, in both wire forms: nothing raises, and no other event is touched."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tierfuzz.codec import FAULT_SLUGS, decode_batch

RECORDINGS = Path(__file__).parent / "recordings"
READ_ANYWAY = {"missing-medium", "unknown-medium"}


def recorded_events() -> list[Any]:
    """Every recorded event of both versions, as msgpack values: arrays and maps."""
    events: list[Any] = []
    for path in sorted(RECORDINGS.glob("raw-payloads*.json")):
        for recorded in json.loads(path.read_text()).values():
            for message in recorded:
                events += msgspec.msgpack.decode(base64.b64decode(message["payload_b64"]))[1]
    return events


EVENTS = recorded_events()
LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=4)
WRONG = st.recursive(
    LEAVES | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def changed(draw: st.DrawFn, event: Any) -> Any:
    """The event with one value replaced, left out or added, at any depth."""
    if not isinstance(event, list | dict) or not event or draw(st.integers(0, 4)) == 0:
        return draw(WRONG)
    keys = sorted(event) if isinstance(event, dict) else range(len(event))
    key = draw(st.sampled_from(keys))
    copy = dict(event) if isinstance(event, dict) else list(event)
    if draw(st.integers(0, 4)) == 0:
        del copy[key]
    else:
        copy[key] = draw(changed(event[key]))
    return copy


def test_both_wire_forms_are_mutated() -> None:
    assert {type(event) for event in EVENTS} == {list, dict}
    assert len(EVENTS) == 300


@settings(deadline=None, max_examples=500, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_wrong_value_costs_at_most_its_own_event(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(EVENTS) - 1))
    before, victim, after = EVENTS[at - 1], EVENTS[at], EVENTS[(at + 1) % len(EVENTS)]
    wrong = data.draw(changed(victim))
    batch = decode_batch(5, msgspec.msgpack.encode([1.0, [before, wrong, after], 2]))
    lost = [fault.slug for fault in batch.faults if fault.slug not in READ_ANYWAY]
    kept = decode_batch(5, msgspec.msgpack.encode([1.0, [before, after], 2]))
    assert (batch.ts, batch.rank) == (1.0, 2)
    assert (batch.events[0], batch.events[-1]) == kept.events
    assert len(batch.events) + len(lost) == 3
    assert {fault.slug for fault in batch.faults} <= set(FAULT_SLUGS)

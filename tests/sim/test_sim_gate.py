"""The copy gate: seeded delays on a fake clock, hold and release."""

from __future__ import annotations

import random

from tierfuzz.clock import FakeClock
from tierfuzz.model.copies import Copies, Copy
from tierfuzz.sim.gate import CopyGate


def gate_with(delay_s: float, seed: int = 1) -> tuple[CopyGate, FakeClock, Copies]:
    """A gate over an empty queue of copies."""
    clock, copies = FakeClock(), Copies()
    gate = CopyGate(random.Random(seed), delay_s, clock)
    copies.gate = gate
    return gate, clock, copies


def issue(gate: CopyGate, copies: Copies, count: int) -> list[Copy]:
    """Start copies, as a tick would."""
    issued = [copies.issue("backup", [], "") for _ in range(count)]
    gate.issued(copies.pending)
    return issued


def landings(seed: int) -> list[float]:
    """At which time each of ten copies lands when polled as soon as the gate says it may be worth it."""
    gate, clock, copies = gate_with(0.5, seed)
    issue(gate, copies, 10)
    found: list[float] = []
    for _ in range(10):  # each wait ends with at least one copy
        if not len(copies):
            break
        wait = gate.wait_s(copies.pending)
        assert wait is not None
        clock.advance(wait)
        found += [clock.monotonic()] * len(copies.poll())
    assert len(found) == 10
    return found


def test_without_a_delay_copies_land_at_the_next_poll() -> None:
    gate, _, copies = gate_with(0.0)
    issued = issue(gate, copies, 3)
    assert copies.poll() == issued


def test_copies_land_within_the_delay_and_by_the_seed_alone() -> None:
    assert landings(1) == landings(1)
    assert landings(1) != landings(2)
    assert max(landings(1)) <= 0.5
    assert len(set(landings(1))) > 1


def test_held_copies_wait_for_a_release_and_no_timer_is_set() -> None:
    gate, clock, copies = gate_with(0.1)
    issued = issue(gate, copies, 2)
    gate.held = True
    clock.advance(1.0)
    assert gate.wait_s(copies.pending) is None
    assert copies.poll() == []
    gate.held = False
    assert copies.poll() == issued
    assert gate.wait_s(copies.pending) is None

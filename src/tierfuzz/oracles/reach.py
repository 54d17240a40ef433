"""Reach: how often the interesting states were reached, by name."""

from __future__ import annotations

from collections import Counter

from tierfuzz.events import BlockRemoved, BlockStored, KvEvent, Tier
from tierfuzz.eventview import EventView
from tierfuzz.observation import Observation, TierSplit
from tierfuzz.oracles.replies import Expectation
from tierfuzz.program import Generate


def note_sent(
    reach: Counter[str], generate: Generate, made: Expectation, page_size: int, held_copies: bool
) -> None:
    """A request is about to be sent."""
    reach[generate.role] += 1
    reach["namespace"] += bool(made.namespace)
    reach["exact-multiple"] += len(made.tokens) % page_size == 0
    reach["forecast-host-only"] += bool(made.forecast.host_only)
    reach["held-copies"] += held_copies


def note_reply(reach: Counter[str], expected: Expectation, seen: Observation) -> None:
    """A reply has told its tier split."""
    split = seen.split or TierSplit()
    reach["retracted"] += bool(seen.retractions)
    reach["device-hit"] += bool(split.device)
    reach["host-hit"] += bool(split.host)
    reach["storage-hit"] += bool(split.storage)
    reach["mixed-hit"] += bool(split.device and split.host)
    reach["probe-host-only"] += bool(expected.forecast.host_only and split.host)


def note_event(reach: Counter[str], event: KvEvent, view: EventView) -> None:
    """An event has come, and `view` knows of it."""
    if isinstance(event, BlockRemoved):
        reach[f"{event.tier}-eviction"] += 1
    elif isinstance(event, BlockStored) and event.tier is Tier.DEVICE:
        reach["load-back"] += any(view.on_host(h) for h in event.hashes)

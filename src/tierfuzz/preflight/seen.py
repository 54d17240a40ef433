"""What a preflight has seen of a worker, as data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tierfuzz.engines.discovery import Endpoints
from tierfuzz.events import Batch, BlockStored, Tier
from tierfuzz.worker.calls import Answer

NOWHERE = Endpoints()


@dataclass(frozen=True)
class Seen:
    """One worker. `error`: why it could not be asked at all; `answers`: of the same prompt, sent twice, whose
    whole pages are `blocks`; `batches`: events since; `live`: messages that came by themselves; `replayed`:
    the newest batch that the replay told of, None when it did not answer; `idle`: of the idle probe, None
    when it cannot be asked; `at_rest`: rest was proved, or else why not is in `unrest`."""

    url: str
    error: str = ""
    info: dict[str, Any] = field(default_factory=dict)
    healthy: bool = False
    endpoints: Endpoints = NOWHERE
    blocks: tuple[int, ...] = ()
    answers: tuple[Answer, ...] = ()
    batches: tuple[Batch, ...] = ()
    live: int = 0
    replayed: int | None = None
    idle: bool | None = None
    at_rest: bool = False
    unrest: str = ""


@dataclass(frozen=True)
class Check:
    """One line: what was looked at, how it is, and what to do where it is not right. `needed`: without it a
    run proves nothing; else it only proves less."""

    name: str
    ok: bool
    says: str
    cure: str = ""
    needed: bool = True


def stored_on_device(batches: Iterable[Batch]) -> set[int]:
    """Blocks that were announced on device."""
    return {
        h
        for batch in batches
        for event in batch.events
        if isinstance(event, BlockStored) and event.tier is Tier.DEVICE
        for h in event.hashes
    }

"""Faults: small classes that wrap documented seams of the engine, so that an oracle can be shown to bite.

A fault overrides methods named like seams. Each gets the engine, the behaviour that it wraps (`inner`, to be
called with the same arguments) and the seam's own arguments:

    class LostRemoval(Fault):
        def emit_remove(self, engine, inner, node, tier):
            if tier is not Tier.DEVICE:
                inner(node, tier)
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tierfuzz.model.engine import Engine

# Seam -> the object that owns it; "publisher" is the event socket of the simulated worker, "link" the way
# from there to a consumer.
SEAMS: dict[str, str] = {
    "match": "cache",
    "split": "cache",
    "insert": "cache",
    "revive": "cache",
    "hit": "cache",
    "backup": "cache",
    "acknowledge": "cache",
    "copy_content": "cache",
    "evict_device": "cache",
    "demote": "cache",
    "discard": "cache",
    "stage": "cache",
    "drop": "cache",
    "commit": "cache",
    "reserve_host": "cache",
    "evict_host": "cache",
    "remove_host": "cache",
    "free_host": "cache",
    "load_back": "cache",
    "load_node": "cache",
    "lock": "cache",
    "unlock": "cache",
    "write_storage": "cache",
    "emit": "cache",
    "emit_store": "cache",
    "emit_remove": "cache",
    "clear": "cache",
    "allocate": "engine",
    "start": "engine",
    "account": "engine",
    "poll_copies": "engine",
    "stored_pages": "engine",
    "refill": "engine",
    "forget_prefetch": "engine",
    "insert_prompt": "engine",
    "insert_finished": "engine",
    "release": "engine",
    "abort": "engine",
    "flush": "engine",
    "publish": "engine",
    "outgoing": "engine",
    "reply": "engine",
    "tick": "engine",
    "gauges": "engine",
    "send": "publisher",
    "answer": "publisher",
    "advertise": "publisher",
    "relay": "link",
    "reset": "consumer",
    "leave": "consumer",
    "deliver": "consumer",
    "wanted": "consumer",
    "lost": "consumer",
    "book_store": "consumer",
    "book_removal": "consumer",
    "book_clear": "consumer",
    "count_pages": "consumer",
}


class Fault:
    """Base of every fault. `oracle` is the slug that has to notice it, `source` where it was seen.

    The docstring says in one sentence what it does. A fault may keep state: each worker gets its own.
    """

    oracle: str = ""
    source: str = ""


def owners(fault: Fault) -> set[str]:
    """Whose seams a fault overrides."""
    return {owner for seam, owner in SEAMS.items() if hasattr(fault, seam)}


def install(engine: Engine, fault: Fault) -> None:
    """Wrap every seam of the engine and of its cache that `fault` overrides."""
    wrap("cache", engine.cache, engine, fault)
    wrap("engine", engine, engine, fault)


def wrap(owner: str, target: object, context: object, fault: Fault) -> None:
    """Wrap the seams of one owner; `context` is what the fault gets as its first argument."""
    for seam, owned_by in SEAMS.items():
        override = getattr(fault, seam, None)
        if owned_by == owner and override is not None:
            setattr(target, seam, functools.partial(override, context, getattr(target, seam)))

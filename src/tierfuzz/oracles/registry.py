"""Every oracle: its stable slug, its scope, and one sentence of what it says."""

from __future__ import annotations

from dataclasses import dataclass

from tierfuzz.verdict import Scope


@dataclass(frozen=True)
class Oracle:
    """One check. `slug` never changes; `explanation` is for people who read a verdict."""

    slug: str
    scope: Scope
    explanation: str


_ALL = (
    Oracle(
        "host-miss",
        Scope.AT_REST,
        "A prefix that by the operations alone must be on host and not on device was not served from host.",
    ),
    Oracle(
        "prefix-miss",
        Scope.AT_REST,
        "A prefix that by the operations alone must still be held in some tier was recomputed.",
    ),
    Oracle(
        "phantom-hit",
        Scope.ALWAYS,
        "More tokens are reported as cached than any request of the namespace has ever computed, or than a "
        "match may use; more would mean foreign KV.",
    ),
    Oracle(
        "split-sum",
        Scope.ALWAYS,
        "The tier split does not add up to the cached tokens, or is no multiple of a page.",
    ),
    Oracle(
        "ledger-accounting",
        Scope.AT_REST,
        "The events say that pages are (or are not) in a tier, and the accounting of a request disagrees.",
    ),
    Oracle(
        "event-order",
        Scope.ALWAYS,
        "The two tier events of a page came in an order that the policy excludes.",
    ),
    Oracle("orphan-parent", Scope.ALWAYS, "A stored block names a parent that the worker holds in no tier."),
    Oracle("unmatched-removal", Scope.ALWAYS, "A block was removed from a tier that it was never stored in."),
    Oracle("duplicate-store", Scope.ALWAYS, "A block was stored again in a tier that it had not left."),
    Oracle("missing-medium", Scope.ALWAYS, "A store or removal names no medium, so its tier is a guess."),
    Oracle("unknown-medium", Scope.ALWAYS, "A store or removal names a medium that no engine uses."),
    Oracle("malformed-event", Scope.ALWAYS, "A message of the event socket could not be read."),
    Oracle(
        "sequence-gap",
        Scope.ALWAYS,
        "Event batches are missing and no replay has them, or a replay is cut off or not what came.",
    ),
    Oracle(
        "advertised-size",
        Scope.ALWAYS,
        "A block was stored with another block size than the worker advertises, by which routers look up.",
    ),
    Oracle("over-capacity", Scope.AT_REST, "The events claim more blocks in a tier than its pool can hold."),
    Oracle(
        "clear-scope",
        Scope.ALWAYS,
        "After a flush something from before it was served, or the events still claim blocks.",
    ),
    Oracle(
        "no-backup", Scope.AT_REST, "A page that the policy must have copied to host by now has no host copy."
    ),
    Oracle(
        "early-backup",
        Scope.AT_REST,
        "Under write_through_selective a page was copied to host before a second request came to it.",
    ),
    Oracle("content", Scope.ALWAYS, "The same prompt gave other greedy outputs than before."),
    Oracle(
        "leak-at-rest",
        Scope.AT_REST,
        "At rest something is locked or charged that no request, copy or event accounts for, or less is "
        "charged than events claim.",
    ),
    Oracle(
        "pool-levels",
        Scope.AT_REST,
        "The levels that a worker reports do not fit its pools: below zero, above the pool, or more in all.",
    ),
    Oracle(
        "overlap-miss",
        Scope.AT_REST,
        "Pages that were in the tree before a burst and never left it were not served to a request of it.",
    ),
    Oracle(
        "overlap-excess",
        Scope.AT_REST,
        "A request of a burst was served more than was there before or than a mate can have brought.",
    ),
    Oracle(
        "load-accounting",
        Scope.AT_REST,
        "The host tokens reported from rest to rest are not the pages that events show being loaded.",
    ),
    Oracle(
        "host-unseen",
        Scope.AT_REST,
        "Pages that were on host only before a burst were served in it, and no request reports them as host.",
    ),
    Oracle(
        "insert-bound",
        Scope.AT_REST,
        "Pages that a finished request must have inserted were never announced.",
    ),
    Oracle(
        "storage-miss",
        Scope.AT_REST,
        "Pages that were written to storage and lie behind those held were not brought back.",
    ),
    Oracle(
        "storage-claim",
        Scope.AT_REST,
        "Events claim that pages are in storage, and a request that needed them was not served from there.",
    ),
    Oracle("storage-phantom", Scope.AT_REST, "More came from storage than was ever written to it."),
    Oracle(
        "storage-below-threshold",
        Scope.AT_REST,
        "Less came from storage than the threshold lets a prefetch be.",
    ),
    Oracle(
        "namespace-leak",
        Scope.AT_REST,
        "A request was served from storage what only another namespace had computed.",
    ),
    Oracle(
        "unexplained-store",
        Scope.AT_REST,
        "A block was stored on device that is a page of no prompt and no answer.",
    ),
    Oracle(
        "router-stale",
        Scope.AT_REST,
        "The consumer claims pages of a known prompt in a tier that its messages did not put them into.",
    ),
    Oracle(
        "router-miss",
        Scope.AT_REST,
        "The consumer got all messages and claims fewer pages of a known prompt in a tier than they say.",
    ),
    Oracle(
        "wrong-worker",
        Scope.AT_REST,
        "The consumer routes a prompt to a worker that holds less of it than another one of equal load.",
    ),
    Oracle(
        "router-leak",
        Scope.AT_REST,
        "The consumer claims pages for a worker or rank that left, or more than the pool of a tier holds.",
    ),
    Oracle(
        "hang", Scope.ALWAYS, "A reply, a flush of an idle worker, or rest did not come within its bound."
    ),
    Oracle("crash", Scope.ALWAYS, "The worker process ended by itself, or closed its connections."),
)

ORACLES: dict[str, Oracle] = {oracle.slug: oracle for oracle in _ALL}

# Findings of the decoder and of the event socket, and the oracle that reports them.
ORACLE_OF_FAULT: dict[str, str] = {
    "malformed-payload": "malformed-event",
    "malformed-event": "malformed-event",
    "malformed-frames": "malformed-event",
    "wrong-arity": "malformed-event",
    "unknown-event": "malformed-event",
    "token-count": "malformed-event",
    "missing-medium": "missing-medium",
    "unknown-medium": "unknown-medium",
    "sequence-gap": "sequence-gap",
    "replay-truncated": "sequence-gap",
    "replay-differs": "sequence-gap",
    "subscriber-restart": "sequence-gap",
    "orphan-parent": "orphan-parent",
    "self-parent": "orphan-parent",
    "unmatched-removal": "unmatched-removal",
    "duplicate-store": "duplicate-store",
    "hang": "hang",
    "crash": "crash",
}

# Faults that only the event socket finds; the others are part of a batch.
TRANSPORT_FAULTS = (
    "malformed-frames",
    "sequence-gap",
    "replay-truncated",
    "replay-differs",
    "subscriber-restart",
)

"""The causal constraints of one worker's events, each once: what must be true before an event about a block.

Sources: engine-semantics 4 and 5, engine-0.5.23 section 1, known-bugs facts 1 to 7. An order that breaks a
rule was never sent by a healthy engine. Some broken orders are known from real ones: these have a family.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tierfuzz.events import Tier
from tierfuzz.model.rules import rules_for
from tierfuzz.orders.holdings import Holdings
from tierfuzz.orders.stream import Step
from tierfuzz.program import WritePolicy

DEVICE, HOST = Tier.DEVICE, Tier.HOST

# Orders that are illegal but were seen; the value says where.
FAMILIES = {
    "child-first": "a child is stored before its parent (E5: write_back of 0.5.17)",
    "duplicate": "a block is stored where it is already (B6c: two namespaces with one hash; T21, T28)",
    "middle-removal": "a block goes while its child stays in the tier (T04, T31)",
    "silent-revival": "a block is on device and no event has said so (B7: 0.5.17)",
}


@dataclass(frozen=True)
class Discipline:
    """What decides the order of a page's events.

    `removal_first`: a device removal comes before the host store of the same page (write_back; fact 1).
    `reclaims`: host gives up copies of pages that are on device (write_back; fact 2).
    `storage`: pages can come to host from below. `allowed`: families that count as legal.
    """

    policy: WritePolicy
    removal_first: bool = False
    reclaims: bool = False
    storage: bool = False
    allowed: frozenset[str] = frozenset()

    @property
    def copies_ahead(self) -> bool:
        """Host copies are made of pages on device, before these are needed to go (write_through*)."""
        return self.policy != "write_back"

    @cached_property
    def rules(self) -> dict[tuple[str, Tier], tuple[Rule, ...]]:
        """Rules in force, by kind and tier of the step."""
        keys = {(rule.kind, rule.tier) for rule in RULES}
        return {key: tuple(r for r in RULES if (r.kind, r.tier) == key and self._asks(r)) for key in keys}

    def _asks(self, rule: Rule) -> bool:
        return rule.applies(self) and rule.family not in self.allowed


@lru_cache
def discipline_of(policy: WritePolicy, profile: str = "default", storage: bool = False) -> Discipline:
    """The discipline of an engine profile under a policy; UsageError for an unknown profile."""
    rules = rules_for(profile)
    back = policy == "write_back"
    reclaims = back and (rules.unified or rules.reclaims_on_device_copies)
    return Discipline(policy, back and rules.removal_first, reclaims, storage)


def _always(_: Discipline) -> bool:
    return True


@dataclass(frozen=True)
class Rule:
    """One constraint: `broken` is asked before the step is booked. `says` is what a legal step fulfils."""

    slug: str
    kind: str
    tier: Tier
    says: str
    broken: Callable[[Holdings, Step], bool]
    family: str = ""
    applies: Callable[[Discipline], bool] = _always


def _orphan(now: Holdings, step: Step) -> bool:
    return step.parent is not None and not now.held(step.parent)


def _parent_elsewhere(now: Holdings, step: Step) -> bool:
    return step.parent is not None and now.held(step.parent) and not now.on(step.tier, step.parent)


def _twice(now: Holdings, step: Step) -> bool:
    return now.on(step.tier, step.block)


def _not_on_device(now: Holdings, step: Step) -> bool:
    return not now.on(DEVICE, step.block)


def _not_removed(now: Holdings, step: Step) -> bool:
    return step.block not in now.uncopied


def _gap_above_host(now: Holdings, step: Step) -> bool:
    return not now.on(HOST, step.block) and any(now.children(HOST, step.block))


def _absent(now: Holdings, step: Step) -> bool:
    return not now.on(step.tier, step.block)


def _last_copy(now: Holdings, step: Step) -> bool:
    return now.copies[step.tier][step.block] == 1


def _has_children(now: Holdings, step: Step) -> bool:
    stay = (child for child in now.children(step.tier, step.block) if child not in step.together)
    return _last_copy(now, step) and any(True for _ in stay)


def _has_children_below_host(now: Holdings, step: Step) -> bool:
    return not now.on(DEVICE, step.block) and _has_children(now, step)


def _copy_in_use(now: Holdings, step: Step) -> bool:
    return _last_copy(now, step) and now.on(DEVICE, step.block)


def _lost_above_host(now: Holdings, step: Step) -> bool:
    return _last_copy(now, step) and _gap_above_host(now, step)


RULES: tuple[Rule, ...] = (
    Rule("parent-held", "store", DEVICE, "its parent is held in some tier", _orphan, "child-first"),
    Rule("parent-held", "store", HOST, "its parent is held in some tier", _orphan, "child-first"),
    Rule("parent-on-device", "store", DEVICE, "its parent is on device", _parent_elsewhere, "silent-revival"),
    Rule(
        "parent-on-host",
        "store",
        HOST,
        "its parent has a host copy",
        _parent_elsewhere,
        applies=lambda d: d.copies_ahead,
    ),
    Rule("stored-once", "store", DEVICE, "it is not on device", _twice, "duplicate"),
    Rule("stored-once", "store", HOST, "it is not on host", _twice, "duplicate"),
    Rule(
        "copy-of-device",
        "store",
        HOST,
        "it is on device, from where it is copied",
        _not_on_device,
        applies=lambda d: not d.removal_first and not d.storage,
    ),
    Rule(
        "removal-first",
        "store",
        HOST,
        "its device removal was announced before",
        _not_removed,
        applies=lambda d: d.removal_first and not d.storage,
    ),
    Rule("no-gap", "store", DEVICE, "no host copy hangs below it while it has none", _gap_above_host),
    Rule("announced", "remove", DEVICE, "it is on device", _absent, "silent-revival"),
    Rule("announced", "remove", HOST, "it is on host", _absent),
    Rule(
        "leaf-first",
        "remove",
        DEVICE,
        "none of its children stays on device",
        _has_children,
        "middle-removal",
    ),
    Rule(
        "leaf-first",
        "remove",
        HOST,
        "none of its children stays on host",
        _has_children,
        "middle-removal",
        lambda d: not d.reclaims,
    ),
    Rule(
        "leaf-first",
        "remove",
        HOST,
        "none of its children stays on host while it is not on device",
        _has_children_below_host,
        "middle-removal",
        lambda d: d.reclaims,
    ),
    Rule(
        "copy-stays",
        "remove",
        HOST,
        "it is not on device (copies of what is on device stay)",
        _copy_in_use,
        applies=lambda d: not d.reclaims,
    ),
    Rule(
        "nothing-below",
        "remove",
        DEVICE,
        "it has a host copy, or nothing below it has one",
        _lost_above_host,
        applies=lambda d: not d.removal_first,
    ),
)


def broken_rule(discipline: Discipline, now: Holdings, step: Step) -> Rule | None:
    """The first rule that the step breaks, None for a legal one; clears and restarts are always legal."""
    for rule in discipline.rules.get((step.kind, step.tier), ()):
        if rule.broken(now, step):
            return rule
    return None

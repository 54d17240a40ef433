"""Is this stream one that an engine may send: the first step that is not, every one, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tierfuzz.events import Tier
from tierfuzz.orders.causality import FAMILIES, Discipline, Rule, broken_rule, discipline_of
from tierfuzz.orders.holdings import Books, Holdings
from tierfuzz.orders.stream import Restarted, Step, Stream, steps_of
from tierfuzz.program import WritePolicy


@dataclass(frozen=True)
class Illegal:
    """A step against causality. `entry` and `event` are indices; `family` "": no engine is known for it."""

    entry: int
    event: int
    block: int
    tier: Tier
    rule: str
    family: str
    why: str


def discipline(stream: Stream, policy: WritePolicy | None = None) -> Discipline:
    """By which discipline a stream is judged: its own, or that of another policy of the same engine."""
    return discipline_of(policy or stream.policy, stream.profile, stream.storage)


def explain(stream: Stream, policy: WritePolicy | None = None) -> Illegal | None:
    """The first illegal event and why; None for a stream that the engine may have sent."""
    return next(audit(stream, discipline(stream, policy)), None)


def families(stream: Stream, policy: WritePolicy | None = None) -> frozenset[str]:
    """Families of all illegal steps; "" for a step that no engine is known for."""
    return frozenset(illegal.family for illegal in audit(stream, discipline(stream, policy)))


def audit(stream: Stream, by: Discipline) -> Iterator[Illegal]:
    """Every illegal step, each judged by what all events before it have said."""
    books = Books()
    for number, entry in enumerate(stream.entries):
        if isinstance(entry, Restarted):
            books.book((entry.worker, 0), Step("restart"))
            continue
        for index, event in enumerate(entry.events):
            for step in steps_of(event, entry.namespace(index)):
                now = books.of(entry.source, step.namespace)
                if rule := broken_rule(by, now, step):
                    yield _illegal(stream, now, rule, step, (number, index))
                books.book(entry.source, step)


def _illegal(stream: Stream, now: Holdings, rule: Rule, step: Step, at: tuple[int, int]) -> Illegal:
    """A block of several namespaces explains whatever is wrong around it (B6c)."""
    around = {step.block, step.parent, *now.children(step.tier, step.block)}
    family = "duplicate" if around & stream.shared else rule.family
    verb = "stored on" if step.kind == "store" else "removed from"
    why = f"a page is {verb} {step.tier} only if {rule.says}"
    if family:
        why += f" ({FAMILIES[family]})"
    return Illegal(*at, step.block, step.tier, rule.slug, family, why)

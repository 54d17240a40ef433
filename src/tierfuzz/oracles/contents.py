"""Whether answers from the cache are those of a cold start, by comparison with the engine's own controls.

A comparison is one answer against the cold answer to the same prompt. It differs beyond what honest answers
of the same run show; a group of them is wrong when it differs more often than a matched group does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from tierfuzz.oracles.odds import fisher

MARGIN = 1.5  # times the largest difference of honest answers
LOOSE = 2.0  # beside others, prefilled prefixes differ by this many times what they do alone
GRAIN = 0.01  # of what one changed token does: less is nothing, even where honest answers are equal
GAP = 2.0  # a changed token has to do this many times what still counts as honest
SURE, SUSPICIOUS = 1e-6, 1e-2  # odds of chance
FEWEST = 3  # answers that differ

Served = Literal["device", "host", "storage", "fresh"]
Outcome = Literal["differs", "equal", "unknown"]


class Comparison(msgspec.Struct, frozen=True):
    """One answer against the cold one. `kind`: how the prefix came to be, as `at`, `before`, `after` (an
    answer ended there, seen from a page boundary), `cut` (at one, and its last page is not asked for),
    `prefilled`, `traffic`, `quiet`. `greedy`: the outputs are equal."""

    kind: str
    served: Served
    difference: float
    greedy: bool
    prompt: int = 0
    outputs: int = 0
    shape: str = ""


class Figures(msgspec.Struct, frozen=True):
    """What the engine shows before anything is judged: one changed token, and honest answers."""

    cold: float
    early: float
    late: float
    device: float
    prefilled: float

    @property
    def sensitivity(self) -> float:
        """What one changed token does, where it does least."""
        return min(self.early, self.late)

    @property
    def noise(self) -> float:
        """The largest difference of honest answers."""
        return max(self.cold, self.device, self.prefilled)

    @property
    def enough(self) -> bool:
        """A changed token stands out."""
        return self.sensitivity > 0 and self.sensitivity >= GAP * MARGIN * self.noise

    def described(self) -> str:
        """For people."""
        return (
            f"one changed token moves log probabilities by {self.early:.3f} (early) and {self.late:.3f} "
            f"(next to last); honest answers: cold {self.cold:.3f}, from device {self.device:.3f}, "
            f"prefilled from host {self.prefilled:.3f}"
        )


class Finding(msgspec.Struct, frozen=True):
    """One question, and its answer in counts."""

    question: str
    differ: int
    tries: int
    control: str
    control_differ: int
    control_tries: int
    limit: float
    odds: float
    outcome: Outcome


def limit_of(figures: Figures, honest: Iterable[Comparison], strict: bool = False) -> float:
    """The largest difference that still counts as honest; `strict`: for prefilled prefixes, whose answers
    are equal to the last bit on most engines; where they are not, batches change them, and more is honest."""
    floor = LOOSE * figures.prefilled if strict else figures.noise
    seen = max((one.difference for one in honest), default=0.0)
    return max(MARGIN * max(floor, seen), GRAIN * figures.sensitivity)


def judge(
    question: str, suspects: Sequence[Comparison], control: str, controls: Sequence[Comparison], limit: float
) -> Finding:
    """Whether the suspects differ more often than their controls."""
    k, j = (sum(one.difference > limit for one in group) for group in (suspects, controls))
    odds = fisher(k, len(suspects), j, len(controls))
    outcome: Outcome = "differs" if k >= FEWEST and odds < SURE else "equal"
    if outcome == "equal" and (odds < SUSPICIOUS or not suspects or not controls):
        outcome = "unknown"
    return Finding(question, k, len(suspects), control, j, len(controls), limit, odds, outcome)


def findings_of(figures: Figures, seen: Sequence[Comparison]) -> list[Finding]:
    """Every question that the comparisons can answer."""
    return [*_conversations(figures, seen), *_traffic(figures, seen)]


def _conversations(figures: Figures, seen: Sequence[Comparison]) -> list[Finding]:
    talks = [one for one in seen if one.kind in ("at", "before", "after", "cut")]
    device = _served(talks, "device")
    if not talks:
        return []
    limit = limit_of(figures, device)
    found = []
    for tier in ("host", "storage"):
        held = _served(talks, tier)
        if not held:
            continue
        others = [one for one in held if one.kind != "at"]
        at = [one for one in held if one.kind == "at"]
        name = f"continued from {tier}"
        found.append(judge(f"{name}, last output finishes a page", at, "the same, elsewhere", others, limit))
        found.append(judge(f"{name}, last output elsewhere", others, "the same from device", device, limit))
    return [*found, *_prefilled(figures, seen)]


def _prefilled(figures: Figures, seen: Sequence[Comparison]) -> list[Finding]:
    whole = [one for one in seen if one.kind == "prefilled"]
    device = [one for one in whole if one.served == "device"]
    host = [one for one in whole if one.served != "device"]
    limit = limit_of(figures, device, strict=True)
    return [judge("prefilled, not from device", host, "the same from device", device, limit)] if host else []


def _traffic(figures: Figures, seen: Sequence[Comparison]) -> list[Finding]:
    busy = [one for one in seen if one.kind == "traffic"]
    fresh, host, device = (_served(busy, tier) for tier in ("fresh", "host", "device"))
    quiet = [one for one in seen if one.kind == "quiet" and one.served != "fresh"]
    if not fresh:
        return []
    limit, honest = limit_of(figures, (), strict=True), [*fresh, *quiet]
    control = "computed beside decodes, or without decodes"
    return [
        judge("beside decodes, from host", host, control, honest, limit),
        judge("beside decodes, from device", device, control, honest, limit),
    ]


def _served(ones: Sequence[Comparison], tier: str) -> list[Comparison]:
    return [one for one in ones if one.served == tier]

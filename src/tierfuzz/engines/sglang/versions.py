"""What the judgement has to know of an SGLang version."""

from __future__ import annotations

from tierfuzz.codec import Wire
from tierfuzz.model.rules import PROFILES, Rules
from tierfuzz.traits import Traits

DEFAULT_VERSION = "0.5.17"
FIRST_UNIFIED = (0, 5, 23)  # the newer of the two versions that are known in depth


def rules_of(version: str) -> Rules:
    """The rules of a known version, or those of the known one that it is nearest to."""
    known = PROFILES.get(f"sglang-{version}")
    if known is not None:
        return known
    return PROFILES["sglang-0.5.23" if _number(version) >= FIRST_UNIFIED else "sglang-0.5.17"]


def traits_of(version: str) -> Traits:
    """Traits of a version."""
    rules = rules_of(version)
    return Traits(not rules.namespace_aliasing, rules.removal_first, rules.silent_revival)


def wire_of(version: str) -> Wire:
    """Form of its events."""
    return "map" if rules_of(version).wire == "map" else "array"


def _number(version: str) -> tuple[int, ...]:
    """The leading numbers: 0.5.23.post1 is (0, 5, 23)."""
    numbers: list[int] = []
    for part in version.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)

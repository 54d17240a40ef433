"""What the judgement has to know of an SGLang version."""

from __future__ import annotations

from tierfuzz.codec import Wire
from tierfuzz.model.versions import DEFAULT_VERSION, rules_of_version
from tierfuzz.traits import Traits

__all__ = ["DEFAULT_VERSION", "traits_of", "wire_of"]


def traits_of(version: str) -> Traits:
    """Traits of a version."""
    rules = rules_of_version(version)
    return Traits(not rules.namespace_aliasing, rules.removal_first, rules.silent_revival)


def wire_of(version: str) -> Wire:
    """Form of its events."""
    return "map" if rules_of_version(version).wire == "map" else "array"

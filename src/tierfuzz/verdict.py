"""Verdicts: what an oracle says about one check; unknown never counts as a pass."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Outcome(StrEnum):
    """The three answers of a check."""

    HOLDS = "holds"
    VIOLATION = "violation"
    UNKNOWN = "unknown"


class Scope(StrEnum):
    """When an oracle may be asked: always, or only about a worker at rest."""

    ALWAYS = "always"
    AT_REST = "at_rest"


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """One check of one oracle.

    `oracle` is the stable slug; `operation` the id of the operation it is about ("" for the whole run);
    `message` one sentence with the figures; `reasons` the chain that a forecast followed; `facts` are
    JSON-able values that a predicate over known defects may look at; `seen`/`tries` are k of n where the
    check was repeated.
    """

    oracle: str
    outcome: Outcome
    worker: int
    operation: str
    message: str
    reasons: tuple[str, ...] = ()
    facts: dict[str, str | int | float | bool | None] = {}
    seen: int = 1
    tries: int = 1

    @property
    def is_violation(self) -> bool:
        """True when the check failed."""
        return self.outcome is Outcome.VIOLATION

"""Exceptions of violations: one type an oracle, so that Hypothesis can tell failures apart."""

from __future__ import annotations

from collections.abc import Sequence

from tierfuzz.evidence import Evidence
from tierfuzz.oracles.registry import ORACLES
from tierfuzz.program import Program
from tierfuzz.verdict import Verdict

NOTHING = Evidence()


class Violation(AssertionError):
    """A check failed; `verdicts` are all violations of the case, `program` what was done, `evidence` what is
    known of that run; `original`: the program that was shrunk to this one, or None."""

    def __init__(
        self,
        message: str,
        verdicts: Sequence[Verdict],
        program: Program,
        evidence: Evidence = NOTHING,
        original: Program | None = None,
    ) -> None:
        super().__init__(message)
        self.verdicts = list(verdicts)
        self.program = program
        self.evidence = evidence
        self.original = original


def _type_of(slug: str) -> type[Violation]:
    name = "".join(part.capitalize() for part in slug.split("-")) + "Violation"
    return type(name, (Violation,), {"__doc__": ORACLES[slug].explanation})


TYPES: dict[str, type[Violation]] = {slug: _type_of(slug) for slug in ORACLES}


def violation_of(
    verdicts: Sequence[Verdict],
    program: Program,
    evidence: Evidence = NOTHING,
    original: Program | None = None,
    more: str = "",
) -> Violation:
    """The exception for the first violation of a case; `more` is said after it."""
    first = verdicts[0]
    message = "\n".join([describe(first), more]).rstrip("\n")
    return TYPES[first.oracle](message, verdicts, program, evidence, original)


def describe(verdict: Verdict) -> str:
    """A verdict for people: slug, place, message, how often, and what a forecast followed."""
    times = f" ({verdict.seen} of {verdict.tries} tries)" if verdict.tries > 1 else ""
    lines = [f"{verdict.oracle} at {verdict.operation or 'rest'} on worker {verdict.worker}{times}:"]
    lines.append(f"  {verdict.message}")
    lines += [f"  because {reason}" for reason in verdict.reasons]
    return "\n".join(lines)

"""Which known defect a violation is: by its oracle and facts, where the version has that defect.

Nothing is looked for because it is known: a violation is found first and named afterwards, so that findings
that are new stand apart. A signature asks for what only its defect does; what is left over is new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tierfuzz.model.rules import Rules
from tierfuzz.model.versions import rules_of_fleet
from tierfuzz.program import FleetConfig
from tierfuzz.verdict import Verdict

Facts = Mapping[str, str | int | float | bool | None]
LOAD_BACK_LEAST = 10  # tokens: shorter host parts are declined (5.6)


@dataclass(frozen=True)
class Signature:
    """How a defect shows. `has`: the version has it; `fits`: the facts are those of the defect."""

    defect: str
    oracle: str
    has: Callable[[Rules], bool]
    fits: Callable[[Facts, FleetConfig], bool]


def _declined(facts: Facts, config: FleetConfig) -> bool:
    host = facts.get("host")
    return config.page_size < LOAD_BACK_LEAST and isinstance(host, int) and 0 < host < LOAD_BACK_LEAST


SIGNATURES: tuple[Signature, ...] = (
    Signature(
        "B6c",
        "duplicate-store",
        lambda rules: rules.namespace_aliasing,
        lambda facts, _: facts.get("shared_hash") is True,
    ),
    Signature(
        "B6c",
        "unmatched-removal",
        lambda rules: rules.namespace_aliasing and not rules.silent_revival,
        lambda facts, _: facts.get("shared_hash") is True,
    ),
    Signature(
        "B7",
        "unmatched-removal",
        lambda rules: rules.silent_revival,
        lambda facts, _: facts.get("tier") == "device" and facts.get("revival_candidate") is True,
    ),
    Signature(
        "E5",
        "orphan-parent",
        lambda rules: rules.child_first_host_stores and rules.staged_at_end,
        lambda facts, config: facts.get("tier") == "host" and config.policy == "write_back",
    ),
    Signature("B5", "split-sum", lambda rules: rules.declined_split_wrong, _declined),
    Signature("B6", "namespace-leak", lambda rules: rules.storage_ignores_namespace, lambda _, __: True),
)


def known_defect(verdict: Verdict, config: FleetConfig) -> str:
    """The name of the known defect that this violation is, or "" for one that is new."""
    rules = rules_of_fleet(config)
    for signature in SIGNATURES:
        if (
            signature.oracle == verdict.oracle
            and signature.has(rules)
            and signature.fits(verdict.facts, config)
        ):
            return signature.defect
    return ""

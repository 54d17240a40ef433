"""What a campaign found: figures of each policy, failing cases, known defects apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tierfuzz.defects.entry import KnownDefect
from tierfuzz.errors import ExitCode
from tierfuzz.evidence import Evidence
from tierfuzz.program import FleetConfig, Program, WritePolicy
from tierfuzz.shrinking import Shrunk
from tierfuzz.verdict import Verdict

REQUIRED_REACH = "probe-host-only"


@dataclass
class Failure:
    """One failing case: its verdicts (with k of n), what it did, and what is known of that run.

    `shrunk`: the same made small, where it was.
    """

    verdicts: list[Verdict]
    program: Program
    evidence: Evidence = field(default_factory=Evidence)
    shrunk: Shrunk | None = None


@dataclass
class Known:
    """A known defect of the version under test: in how many cases it showed, and the first of them."""

    cases: int
    failure: Failure


@dataclass
class PolicyResult:
    """Figures of one policy. `held`, `violated` and `unknown` count checks by oracle; `failures` are cases
    with violations that no known defect of the version explains, `known` the others by defect, `accepted`
    the entries among those that do not fail the campaign."""

    policy: WritePolicy
    examples: int = 0
    operations: int = 0
    requests: int = 0
    seconds: float = 0.0
    reach: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    violated: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    known: dict[str, Known] = field(default_factory=dict)
    accepted: dict[str, KnownDefect] = field(default_factory=dict)
    interrupted: bool = False
    required: str = REQUIRED_REACH

    @property
    def failed(self) -> bool:
        """Something was found that is not accepted."""
        return bool(self.failures) or bool(set(self.known) - set(self.accepted))

    @property
    def vacuous(self) -> bool:
        """The state that the run exists for was never reached."""
        return not self.reach[self.required]


@dataclass
class CampaignResult:
    """All policies of a campaign; `broken` says which listeners failed: their output ends where they did.

    `unseen`: accepted defects that could have shown, and did not.
    """

    policies: list[PolicyResult]
    broken: list[str] = field(default_factory=list)
    unseen: list[KnownDefect] = field(default_factory=list)

    @property
    def exit_code(self) -> ExitCode:
        """0 held, 1 violation, 4 vacuous, 130 interrupted before anything was found (docs/messages.md)."""
        if any(result.failed for result in self.policies):
            return ExitCode.VIOLATION
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if not self.policies or any(result.vacuous for result in self.policies):
            return ExitCode.VACUOUS
        return ExitCode.HELD

    @property
    def interrupted(self) -> bool:
        """Ended by Ctrl-C."""
        return any(result.interrupted for result in self.policies)


def required_reach(fleet: FleetConfig) -> str:
    """What has to be reached: host-only probes, or with a storage tier hits from storage."""
    return "storage-hit" if fleet.storage_threshold else REQUIRED_REACH

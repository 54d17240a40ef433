"""The state machine: random prime, filler and probe operations on a live fleet.

Subclass it and set attributes:

    class WriteBack(TierMachine):
        policy = "write_back"

    TestWriteBack = WriteBack.TestCase

Preconditions and strategies look at what was drawn only; rules record; verdicts are raised once, in teardown.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from hypothesis import target
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tierfuzz.evidence import evidence_of
from tierfuzz.machine_failures import confirmed, violation_in
from tierfuzz.machine_overlaps import OverlapRules
from tierfuzz.machine_storage import StorageRules
from tierfuzz.oracles.known import KnownPrefix
from tierfuzz.profiles import machine_settings, nearest_root
from tierfuzz.program import (
    Fill,
    FleetConfig,
    Flush,
    Generate,
    Hold,
    Operation,
    Program,
    Release,
    Restart,
    Role,
    WritePolicy,
)
from tierfuzz.runner import Runner
from tierfuzz.session import SESSIONS
from tierfuzz.shrink.budget import Limits
from tierfuzz.shrinking import MODEST
from tierfuzz.strategies import operations as ops
from tierfuzz.strategies import prompts
from tierfuzz.verdict import Verdict

MOST_SENT = 24
MOST_PROMPT_SHARE = 3  # a grown prompt takes at most a third of the device pool


class TierMachine(OverlapRules, StorageRules, RuleBasedStateMachine):
    """See the module. `fleet` wins over `policy`; `repeats`: runs of a failing case in all, for "k of n".

    `shrink`: the most that is spent to make a failing case small; None: it is raised as it was run.
    """

    policy: ClassVar[WritePolicy] = "write_through"
    fleet: ClassVar[FleetConfig | None] = None
    repeats: ClassVar[int] = 3
    shrink: ClassVar[Limits | None] = MODEST

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        cls.TestCase.settings = machine_settings(nearest_root(Path.cwd()))

    def __init__(self) -> None:
        super().__init__()
        self.config = self.fleet or FleetConfig(policy=self.policy, host_ratio=3.0)
        self.runner = self.acquire()
        self.config = self.runner.fleet.config  # of another engine, or of running workers
        self.sent: list[Generate] = []
        self.done: list[Operation] = []
        self.held: set[int] = set()
        self.cut_short = False
        self.begin()

    # what a subclass may change --------------------------------------------------------------------
    def acquire(self) -> Runner:
        """The runner to use; by default one that is shared by all machines of this configuration."""
        return SESSIONS.runner(self.config)

    def begin(self) -> None:
        """Before the first operation of a case."""
        self.runner.reset()

    def conclude(self, verdicts: list[Verdict]) -> None:
        """After the last one: raise for violations, once, with how often they came back."""
        if failed := [verdict for verdict in verdicts if verdict.is_violation]:
            evidence = evidence_of(self.runner.tape)  # before the case is run again
            verdicts = self.confirm(failed)
            raise violation_in(self.runner, self.program, verdicts, evidence, self.shrink)

    # helpers ---------------------------------------------------------------------------------------
    @property
    def program(self) -> Program:
        """What this case has done."""
        return Program(self.config, tuple(self.done))

    def confirm(self, failed: list[Verdict]) -> list[Verdict]:
        """Run the case again, so that the verdicts say k of n."""
        return confirmed(self.runner, self.program, failed, self.repeats)

    def name(self) -> str:
        """An id for the next operation."""
        return f"op{len(self.done)}"

    def apply(self, operation: Operation) -> None:
        """Carry out one operation; none after a worker was lost: that is dear to repeat."""
        if self.runner.lost:
            return
        self.done.append(operation)
        self.cut_short = True
        self.runner.apply(operation)
        self.cut_short = False
        if isinstance(operation, Generate) and operation.role not in ("probe", "exact", "repeat"):
            self.sent = [*self.sent[1 - MOST_SENT :], operation]

    @property
    def probes(self) -> list[KnownPrefix]:
        """Prompts of this case that the forecast says are on host only now."""
        sent = {request.id for request in self.sent}
        known = [known for worker in self.runner.fleet.workers for known in worker.judge.host_only()]
        return [prefix for prefix in known if prefix.generate.id in sent]

    def teardown(self) -> None:
        """One place where everything is said; half an operation (Ctrl-C, a dead worker) says nothing.

        Every case ends with a flush of each worker, so what a flush has to do is asked in every case.
        """
        for worker in range(self.config.places):
            if not self.cut_short:
                self.apply(Flush(self.name(), worker))
        if self.cut_short:
            return
        verdicts = self.runner.finish()
        reach = self.runner.reach
        for label in ("probe-host-only", "host-eviction"):
            target(float(reach[label]), label=label)
        self.conclude(verdicts)

    # rules -----------------------------------------------------------------------------------------
    @initialize(draw=ops.PRIMES)
    def first_prime(self, draw: ops.PrimeDraw) -> None:
        """Something to come back to."""
        self.apply(ops.prime(self.config, self.name(), draw))

    @rule(draw=ops.PRIMES)
    def prime(self, draw: ops.PrimeDraw) -> None:
        """First use of a prefix."""
        self.apply(ops.prime(self.config, self.name(), draw))

    @precondition(lambda self: self.sent)
    @rule(pick=ops.PICKS)
    def repeat(self, pick: int) -> None:
        """An earlier request once more, wherever its pages are now."""
        self.apply(ops.again(ops.picked(self.sent, pick), self.name(), "repeat"))

    @rule(draw=ops.FILLS)
    def fill(self, draw: ops.FillDraw) -> None:
        """Turn the device pool of a worker over."""
        self.apply(ops.fill(self.config, self.name(), draw))

    @precondition(lambda self: self.sent)
    @rule(pick=ops.PICKS)
    def push_off(self, pick: int) -> None:
        """Turn the pool over on the worker of an earlier request, until its device copies are gone."""
        victim = ops.picked(self.sent, pick)
        self.apply(Fill(self.name(), victim.worker, f"f-{self.name()}", target=victim.id))

    @precondition(lambda self: self.sent)
    @rule(draw=ops.PROBES)
    def come_back(self, draw: ops.ProbeDraw) -> None:
        """Push an earlier request off, then probe: what the machine is for, in one step.

        Hypothesis sorts rules by the number of their arguments and by name: the simplest case is made of
        the first, which is this one.
        """
        self.push_off(draw[0])
        self.apply(self.probing(*draw))

    @precondition(lambda self: self.sent)
    @rule(draw=ops.PROBES)
    def probe(self, draw: ops.ProbeDraw) -> None:
        """Read the tier split of a prefix that must be on host only."""
        self.apply(self.probing(*draw))

    def probing(self, pick: int, exact: bool) -> Generate:
        """A probe of a host-only prefix, whole or cut to whole pages (6.2-7); a repeat while there is none.

        Which prefixes are host-only depends on what the workers did (an abort that came late, say), so
        nothing is drawn from that list and no rule waits for it: every run must allow the same choices.
        """
        probes, name = self.probes, self.name()
        known: Generate = ops.picked(probes, pick).generate if probes else ops.picked(self.sent, pick)
        pieces = prompts.exact(known.prompt, self.config.page_size) if exact and probes else ()
        if pieces:
            return Generate(name, known.worker, pieces, 1, "exact", known.namespace)
        role: Role = "probe" if probes else "repeat"
        return Generate(name, known.worker, known.prompt, known.outputs, role, known.namespace)

    @precondition(lambda self: self.sent)
    @rule(draw=ops.FORKS)
    def fork(self, draw: ops.ForkDraw) -> None:
        """Share a part of an earlier prompt."""
        self.apply(ops.fork(self.config, self.sent, self.name(), draw))

    @precondition(lambda self: self.growable)
    @rule(draw=ops.GROWS)
    def grow(self, draw: ops.GrowDraw) -> None:
        """A conversation goes on: prompt, its answer, and a new turn."""
        self.apply(ops.grow(self.config, self.growable, self.name(), draw))

    @property
    def growable(self) -> list[Generate]:
        """Requests with outputs whose prompt is not too long yet."""
        most = self.config.device_tokens // MOST_PROMPT_SHARE
        return [g for g in self.sent if g.outputs and prompts.length_of(g.prompt) + g.outputs < most]

    @rule(draw=ops.NAMESPACED)
    def namespaced(self, draw: ops.NamespacedDraw) -> None:
        """A shared prompt under a namespace."""
        self.apply(ops.namespaced(self.config, self.name(), draw))

    @rule(worker=ops.WORKERS, kind=ops.QUIETS)
    def rest_or_flush(self, worker: int, kind: ops.Quiet) -> None:
        """Idle mostly, flush at times, restart a worker now and then (where a start is not dear)."""
        dear = kind is Restart and self.runner.fleet.driver.dear_restarts
        self.apply((Flush if dear else kind)(self.name(), worker % self.config.places))

    @rule(worker=ops.WORKERS)
    def hold_or_release(self, worker: int) -> None:
        """Simulated worker: hold the copies between tiers back, or let them land."""
        worker %= self.config.places
        self.apply((Release if worker in self.held else Hold)(self.name(), worker))
        self.held ^= {worker}

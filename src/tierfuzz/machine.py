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

import msgspec
from hypothesis import strategies as st
from hypothesis import target
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tierfuzz.oracles.known import KnownPrefix
from tierfuzz.profiles import machine_settings, nearest_root
from tierfuzz.program import (
    Fill,
    FleetConfig,
    Flush,
    Generate,
    Hold,
    Idle,
    Operation,
    Program,
    Release,
    Restart,
    WritePolicy,
)
from tierfuzz.prompts import Piece
from tierfuzz.runner import Runner
from tierfuzz.session import SESSIONS
from tierfuzz.strategies import operations as ops
from tierfuzz.strategies import prompts
from tierfuzz.verdict import Verdict
from tierfuzz.violations import violation_of

MOST_SENT = 24
PICKS = st.integers(0, 255)
MOST_PROMPT_SHARE = 3  # a grown prompt takes at most a third of the device pool


class TierMachine(RuleBasedStateMachine):
    """See the module. `fleet` wins over `policy`; `repeats`: runs of a failing case in all, for "k of n"."""

    policy: ClassVar[WritePolicy] = "write_through"
    fleet: ClassVar[FleetConfig | None] = None
    repeats: ClassVar[int] = 3

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        cls.TestCase.settings = machine_settings(nearest_root(Path.cwd()))

    def __init__(self) -> None:
        super().__init__()
        self.config = self.fleet or FleetConfig(policy=self.policy, host_ratio=3.0)
        self.runner = self.acquire()
        self.sent: list[Generate] = []
        self.done: list[Operation] = []
        self.probes: list[KnownPrefix] = []
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
        failed = [verdict for verdict in verdicts if verdict.is_violation]
        if failed:
            raise violation_of(self.confirm(failed), self.program)

    # helpers ---------------------------------------------------------------------------------------
    @property
    def program(self) -> Program:
        """What this case has done."""
        return Program(self.config, tuple(self.done))

    def confirm(self, failed: list[Verdict]) -> list[Verdict]:
        """Run the case again, so that the verdicts say k of n."""
        runs = [{v.oracle for v in failed}]
        program = self.program
        runs += [_failed_oracles(self.runner.run(program)) for _ in range(self.repeats - 1)]
        return [_seen(verdict, runs) for verdict in failed]

    def name(self) -> str:
        """An id for the next operation."""
        return f"op{len(self.done)}"

    def apply(self, operation: Operation) -> None:
        """Carry out one operation and look at what the model says now."""
        self.done.append(operation)
        self.cut_short = True
        self.runner.apply(operation)
        self.cut_short = False
        if isinstance(operation, Generate) and operation.role not in ("probe", "exact", "repeat"):
            self.sent = [*self.sent[1 - MOST_SENT :], operation]
        self.probes = [
            known
            for worker in self.runner.fleet.workers
            for known in worker.judge.host_only()
            if known.generate.id in {request.id for request in self.sent}
        ]

    def teardown(self) -> None:
        """One place where everything is said; half an operation (Ctrl-C, a dead worker) says nothing."""
        if self.cut_short:
            return
        verdicts = self.runner.finish()
        reach = self.runner.reach
        for label in ("probe-host-only", "host-eviction"):
            target(float(reach[label]), label=label)
        self.conclude(verdicts)

    # rules -----------------------------------------------------------------------------------------
    @initialize(data=st.data())
    def first_prime(self, data: st.DataObject) -> None:
        """Something to come back to."""
        self.apply(data.draw(ops.primes(self.config, self.name())))

    @rule(data=st.data())
    def prime(self, data: st.DataObject) -> None:
        """First use of a prefix."""
        self.apply(data.draw(ops.primes(self.config, self.name())))

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        """An earlier request once more, wherever its pages are now."""
        self.apply(data.draw(ops.repeats(self.sent, self.name())))

    @rule(data=st.data())
    def fill(self, data: st.DataObject) -> None:
        """Turn the device pool of a worker over."""
        self.apply(data.draw(ops.fillers(self.config, self.name())))

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def push_off(self, data: st.DataObject) -> None:
        """Turn the pool over on the worker of an earlier request, until its device copies are gone."""
        victim = data.draw(st.sampled_from(self.sent))
        self.apply(Fill(self.name(), victim.worker, f"f-{self.name()}", target=victim.id))

    @precondition(lambda self: self.sent)
    @rule(pick=PICKS, exact=st.booleans())
    def probe(self, pick: int, exact: bool) -> None:
        """Read the tier split of a prefix that must be on host only."""
        self.apply(self.probing(pick, exact))

    @precondition(lambda self: self.sent)
    @rule(pick=PICKS)
    def probe_again(self, pick: int) -> None:
        """The same, as a rule of its own: it is what the machine is for."""
        self.apply(self.probing(pick, exact=False))

    def probing(self, pick: int, exact: bool) -> Generate:
        """A probe of a host-only prefix, whole or cut to whole pages (6.2-7); a repeat while there is none.

        Which prefixes are host-only depends on what the workers did (an abort that came late, say), so
        nothing is drawn from that list and no rule waits for it: every run must allow the same choices.
        """
        if not self.probes:
            repeated: Generate = ops.again(self.sent[pick % len(self.sent)], self.name(), "repeat")
            return repeated
        known = self.probes[pick % len(self.probes)].generate
        pieces = prompts.exact(known.prompt, self.config.page_size)
        if not exact or not pieces:
            probe: Generate = ops.again(known, self.name(), "probe")
            return probe
        return Generate(self.name(), known.worker, pieces, 1, "exact", known.namespace)

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        """Share a part of an earlier prompt."""
        self.apply(data.draw(ops.forks(self.config, self.sent, self.name())))

    @precondition(lambda self: self.growable)
    @rule(data=st.data())
    def grow(self, data: st.DataObject) -> None:
        """A conversation goes on: prompt, its answer, and a new turn."""
        base = data.draw(st.sampled_from(self.growable))
        turn = Piece(f"t-{self.name()}", 0, data.draw(st.integers(1, self.config.page_size + 2)))
        answer = Piece(f"@{base.id}", 0, base.outputs)
        wanted = data.draw(prompts.outputs(self.config.page_size))
        grown = (*base.prompt, answer, turn)
        self.apply(Generate(self.name(), base.worker, grown, wanted, "grow", base.namespace))

    @property
    def growable(self) -> list[Generate]:
        """Requests with outputs whose prompt is not too long yet."""
        most = self.config.device_tokens // MOST_PROMPT_SHARE
        return [g for g in self.sent if g.outputs and prompts.length_of(g.prompt) + g.outputs < most]

    @rule(data=st.data())
    def namespaced(self, data: st.DataObject) -> None:
        """A shared prompt under a namespace."""
        self.apply(data.draw(ops.namespaced(self.config, self.name())))

    @rule(data=st.data())
    def burst(self, data: st.DataObject) -> None:
        """Requests that overlap, some of them aborted."""
        self.apply(data.draw(ops.bursts(self.config, self.sent, self.name())))

    @rule(data=st.data())
    def rest_or_flush(self, data: st.DataObject) -> None:
        """Idle mostly, flush at times, restart a worker now and then."""
        worker = data.draw(ops.workers(self.config))
        kinds: tuple[type[Idle | Flush | Restart], ...] = (Idle, Idle, Idle, Flush, Flush, Restart)
        self.apply(data.draw(st.sampled_from(kinds))(self.name(), worker))

    @precondition(lambda self: self.config.storage_threshold)
    @rule(data=st.data())
    def storage_control(self, data: st.DataObject) -> None:
        """Empty storage, detach it, attach it again, with another write policy at times."""
        worker = data.draw(ops.workers(self.config))
        self.apply(data.draw(ops.storage_controls(self.config, self.name(), worker)))

    @rule(data=st.data())
    def hold_or_release(self, data: st.DataObject) -> None:
        """Simulated worker: hold the copies between tiers back, or let them land."""
        worker = data.draw(ops.workers(self.config))
        self.apply((Release if worker in self.held else Hold)(self.name(), worker))
        self.held ^= {worker}


def _failed_oracles(verdicts: list[Verdict]) -> set[str]:
    return {verdict.oracle for verdict in verdicts if verdict.is_violation}


def _seen(verdict: Verdict, runs: list[set[str]]) -> Verdict:
    times = sum(verdict.oracle in run for run in runs)
    return msgspec.structs.replace(verdict, seen=times, tries=len(runs))

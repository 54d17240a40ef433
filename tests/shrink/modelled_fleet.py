"""Programs on modelled workers, judged, without processes: what a shrinker runs by the hundred in a test."""

from __future__ import annotations

from collections.abc import Sequence

from modelling import levels, observation_of

from tierfuzz.events import Batch
from tierfuzz.faults.registry import make_fault
from tierfuzz.model.config import EngineConfig
from tierfuzz.model.engine import Engine
from tierfuzz.model.pools import EngineCrash
from tierfuzz.model.request import Reply, Request
from tierfuzz.model.rules import rules_for
from tierfuzz.observation import Observation
from tierfuzz.oracles.judge import Judge
from tierfuzz.program import (
    Burst,
    Fill,
    FleetConfig,
    Flush,
    Generate,
    Hold,
    Idle,
    Operation,
    Program,
    Release,
)
from tierfuzz.resolve import filler_prompts, resolve
from tierfuzz.traits import Traits
from tierfuzz.verdict import Verdict

MOST_TICKS = 4000
RESTFUL_ROLES = ("probe", "exact", "repeat", "fork")
TICKS_BEFORE_ABORT = 2
Made = list[tuple[Generate, tuple[int, ...]]]


class ModelledWorker:
    """An engine and its judge; no storage."""

    def __init__(self, fleet: FleetConfig, index: int) -> None:
        rules = rules_for(fleet.profile)
        config = EngineConfig(
            fleet.page_size, fleet.device_tokens, fleet.host_tokens, fleet.policy, fleet.chunked_prefill
        )
        self.engine = Engine(config, rules, [make_fault(name) for name in fleet.plants])
        traits = Traits(not rules.namespace_aliasing, rules.removal_first, rules.silent_revival)
        self.judge = Judge(fleet, index, traits)
        self.held, self.held_tokens = False, 0
        self.engine.copies.gate = lambda _: not self.held
        self._batches = 0

    def tick(self) -> list[Reply]:
        result = self.engine.tick()
        for events in result.batches:
            self._batches += 1
            self.judge.batch(Batch(self._batches, 0.0, 0, tuple(events)))
        return result.replies

    def rest(self) -> bool:
        """Idle, and the judge knows; False while copies are held."""
        if self.held:
            return False
        for _ in range(MOST_TICKS):
            if self.engine.idle:
                self.judge.rested()
                return True
            self.tick()
        raise RuntimeError("the model did not come to rest")

    def hold(self, held: bool) -> None:
        if held != self.held:
            self.held, self.held_tokens = held, 0
            self.judge.holding(held)

    def make_room_for(self, tokens: int) -> None:
        """Held copies pin device pages: release before requests would have to wait for ever."""
        self.held_tokens += tokens
        if self.held_tokens > self.judge.fleet.device_tokens // 3:
            self.hold(False)

    def serve(self, made: Made) -> list[Observation]:
        """Requests together, until all are answered."""
        for request, tokens in made:
            asked = Request(
                request.id, tokens, request.outputs, request.namespace or "", request.logprob_start
            )
            self.engine.submit(asked)
        replies: dict[str, Reply] = {}
        for tick in range(MOST_TICKS):
            if tick == TICKS_BEFORE_ABORT:
                for request, _ in made:
                    if request.abort_after_s is not None:
                        self.engine.abort(request.id)
            replies.update({reply.rid: reply for reply in self.tick()})
            if len(replies) == len(made):
                return [observation_of(request, tokens, replies[request.id]) for request, tokens in made]
        raise RuntimeError("requests were not answered")


class ModelledFleet:
    """run() is what Runner.run is for live workers; `runs` and `operations` count."""

    def __init__(self) -> None:
        self.runs = 0
        self.operations = 0

    def run(self, program: Program) -> list[Verdict]:
        self.runs += 1
        self.operations += len(program.operations)
        self._fleet = program.fleet
        self._workers = [ModelledWorker(program.fleet, index) for index in range(program.fleet.workers)]
        self._outputs: dict[str, tuple[int, ...]] = {}
        self._prompts: dict[str, tuple[str, tuple[int, ...]]] = {}
        try:
            for operation in program.operations:
                self._apply(operation)
        except (AssertionError, EngineCrash) as error:  # a fault has broken the model's own books
            self._workers[0].judge.transport("crash", repr(error))
            return [verdict for worker in self._workers for verdict in worker.judge.take_verdicts()]
        return [verdict for worker in self._workers for verdict in _ended(worker)]

    def _apply(self, operation: Operation) -> None:
        if isinstance(operation, Generate):
            worker = self._workers[operation.worker]
            at_rest = operation.role in RESTFUL_ROLES and worker.rest()
            self._send(worker, [operation], at_rest)
        elif isinstance(operation, Burst):
            for index in sorted({request.worker for request in operation.requests}):
                worker = self._workers[index]
                mine = [request for request in operation.requests if request.worker == index]
                self._send(worker, mine, worker.rest(), together=True)
                worker.rest()
        elif isinstance(operation, Fill):
            self._fill(self._workers[operation.worker], operation)
        else:
            self._control(self._workers[operation.worker], operation)

    def _send(
        self, worker: ModelledWorker, asked: Sequence[Generate], at_rest: bool, together: bool = False
    ) -> None:
        made = [(request, resolve(request.prompt, self._outputs)) for request in asked]
        worker.make_room_for(sum(len(tokens) + request.outputs for request, tokens in made))
        if together:
            worker.judge.expect_together(made, at_rest=at_rest)
        else:
            for request, tokens in made:
                worker.judge.expect(request, tokens, at_rest=at_rest)
        for (request, tokens), seen in zip(made, worker.serve(made), strict=True):
            self._outputs[request.id] = seen.output_ids
            self._prompts[request.id] = (request.namespace or "", tokens)
            worker.judge.replied(request, seen)

    def _fill(self, worker: ModelledWorker, operation: Fill) -> None:
        worker.rest()
        for request, due in filler_prompts(operation, self._fleet):
            target = self._prompts.get(operation.target)
            if not due and (worker.held or target is None or not worker.judge.claims_device(*target)):
                return
            self._send(worker, [request], at_rest=False)

    def _control(self, worker: ModelledWorker, operation: Operation) -> None:
        if isinstance(operation, Hold):
            worker.hold(True)
        elif isinstance(operation, Release):
            worker.hold(False)
        elif isinstance(operation, Idle):
            worker.rest()
        elif isinstance(operation, Flush):
            worker.hold(False)
            worker.rest()
            worker.engine.flush()
            worker.judge.flushed(operation.id)
            worker.rest()


def _ended(worker: ModelledWorker) -> list[Verdict]:
    worker.hold(False)
    worker.rest()
    worker.judge.gauges(levels(worker.engine))
    return worker.judge.take_verdicts()

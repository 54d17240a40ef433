"""Carries programs out on a live fleet, operation by operation, and feeds the judges.

Rest is proved where a verdict or a later forecast depends on it: before probes, repeats, forks, fillers and
flushes, when asked to idle, and at the end of a case. Everything else goes back to back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing

from tierfuzz.control import WorkerControl
from tierfuzz.fleet import Fleet, Worker
from tierfuzz.observation import Observation
from tierfuzz.program import (
    Burst,
    Fill,
    Generate,
    Operation,
    Program,
)
from tierfuzz.resolve import filler_prompts, resolve
from tierfuzz.runevents import Dispatcher, Emptied, OperationDone, OperationStarted, RequestSent
from tierfuzz.verdict import Verdict
from tierfuzz.worker.http import Answer, Call

TOP_LOGPROBS = 20
RESTFUL_ROLES = ("probe", "exact", "repeat", "fork")


class Runner(WorkerControl):
    """One fleet, one case after the other: reset(), apply() each operation, finish()."""

    def __init__(self, fleet: Fleet, dispatcher: Dispatcher | None = None) -> None:
        super().__init__(fleet, dispatcher or Dispatcher())
        self.requests = 0
        self.case = 0
        self._own = ""  # before the names of streams, where workers are not emptied
        self._outputs: dict[str, tuple[int, ...]] = {}
        self._prompts: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._seen: list[Observation] = []

    # cases -----------------------------------------------------------------------------------------
    def reset(self) -> None:
        """Empty workers (or streams that none has seen), fresh judges: no case depends on an earlier one."""
        self.case += 1
        self._own = "" if self.fleet.config.starts_empty else f"{self.fleet.clock.wall()!r}.{self.case}/"
        self._outputs.clear()
        self._prompts.clear()
        self.verdicts.clear()
        self.tape.clear()
        self.lost = 0
        for worker in self.fleet.workers:
            self.clear(worker)
        for worker in self.fleet.workers:
            worker.subscriber.sync()
            worker.subscriber.drain()
            worker.subscriber.mark()
            worker.subscriber.take_findings()
            self.fleet.renew(worker)
            worker.rested = False
        self.attend()
        self.dispatcher.emit(Emptied())

    def run(self, program: Program) -> list[Verdict]:
        """A whole program on empty workers; its violations and unknowns."""
        self.reset()
        for operation in program.operations:
            self.apply(operation)
        return self.finish()

    def finish(self) -> list[Verdict]:
        """End of a case: release what is held, prove rest, ask the gauges; all verdicts of the case."""
        for worker in self.fleet.workers:
            self.release(worker)
            if self.rest(worker):
                self._audit(worker)
            self.levels(worker)
            self.audit_consumer(worker.index)
            self.collect(worker)
        return list(self.verdicts)

    def _audit(self, worker: Worker) -> None:
        """Whether the worker remembers what it has sent in this case."""
        worker.subscriber.audit()
        self.events(worker)

    @property
    def held(self) -> Counter[str]:
        """Checks of this case that held, by oracle."""
        held = [worker.judge.docket.held for worker in self.fleet.workers]
        return sum(held, self.router_counts()[0])

    @property
    def reach(self) -> Counter[str]:
        """What this case has reached."""
        reach = [worker.judge.reach for worker in self.fleet.workers]
        return sum(reach, self.router_counts()[1])

    # operations ------------------------------------------------------------------------------------
    def apply(self, operation: Operation) -> None:
        """Carry out one operation; what does not fit becomes a verdict, never an exception."""
        self.emit(OperationStarted(operation))
        before, self._seen = self.requests, []
        self.begin(operation)
        if isinstance(operation, Generate):
            self._generate(operation)
        elif isinstance(operation, Fill):
            self._fill(operation)
        elif isinstance(operation, Burst):
            self._burst(operation)
        else:
            self.control(operation)
        self.emit(OperationDone(operation, self.requests - before, tuple(self._seen)))

    # requests --------------------------------------------------------------------------------------
    def _generate(self, operation: Generate) -> None:
        worker = self.worker(operation.worker)
        tokens = resolve(operation.prompt, self._outputs, self._own)
        self.make_room_for(worker, len(tokens) + operation.outputs)
        at_rest = operation.role in RESTFUL_ROLES and worker.held_tokens is None and self.rest(worker)
        worker.judge.expect(operation, tokens, at_rest=at_rest)
        call = self._call(operation, tokens)
        answers = (
            worker.client.generate_many([call])
            if operation.abort_after_s is not None
            else [worker.client.generate(call)]
        )
        self._receive(worker, [(operation, tokens)], answers)
        fleet = self.fleet.config
        if at_rest and (fleet.storage_threshold or fleet.host_tokens < fleet.device_tokens):
            self.rest(worker)  # what storage gave, and what a small host took, can be judged then only

    def _burst(self, operation: Burst) -> None:
        for index in sorted({request.worker for request in operation.requests}):
            worker = self.worker(index)
            mine = [request for request in operation.requests if request.worker == index]
            made = [(request, resolve(request.prompt, self._outputs, self._own)) for request in mine]
            self.make_room_for(worker, sum(len(tokens) + r.outputs for r, tokens in made))
            at_rest = worker.held_tokens is None and self.rest(worker)
            worker.judge.expect_together(made, at_rest=at_rest)
            calls = [self._call(request, tokens) for request, tokens in made]
            self._receive(worker, made, worker.client.generate_many(calls))
            if at_rest:
                self.rest(worker)

    def _fill(self, operation: Fill) -> None:
        worker = self.worker(operation.worker)
        self.rest(worker)
        requests = list(filler_prompts(operation, self.fleet.config))
        due = [request for request, is_due in requests if is_due]
        if worker.held_tokens is None:
            self._in_turn(worker, due)
        else:
            for request in due:
                self._generate(request)
        for request, _ in requests[len(due) :]:
            if not self._on_device(worker, operation.target):
                return
            self._generate(request)
        if self._on_device(worker, operation.target):
            self._gave_up(worker, operation, len(requests))

    def _in_turn(self, worker: Worker, requests: list[Generate]) -> None:
        """One after another, each as soon as the one before was answered: judging one overlaps the next.

        All are expected before the first is sent: they share nothing, so no forecast depends on another.
        """
        made = [(request, resolve(request.prompt, self._outputs, self._own)) for request in requests]
        for request, tokens in made:
            worker.judge.expect(request, tokens, at_rest=False)
        calls = [self._call(request, tokens) for request, tokens in made]
        received = 0
        with closing(worker.client.generate_in_turn(calls)) as answers:
            for pair, answer in zip(made, answers, strict=False):
                received += 1
                self._receive(worker, [pair], [answer])
        self.requests -= len(calls) - received

    def _gave_up(self, worker: Worker, operation: Fill, requests: int) -> None:
        worker.judge.docket.unknown(
            "host-miss",
            operation.id,
            f"after {requests} fillers events still claim device copies of the prompt of {operation.target}: "
            "whether its pages are on host cannot be asked",
        )
        self.collect(worker)

    def _on_device(self, worker: Worker, target: str) -> bool:
        """Events still claim a device copy of the target's prompt."""
        namespace, tokens = self._prompts.get(target, ("", ()))
        if not tokens or worker.held_tokens is not None:
            return False
        return worker.judge.claims_device(namespace, tokens)

    def _call(self, operation: Generate, tokens: tuple[int, ...]) -> Call:
        self.requests += 1
        known = self.fleet.workers[operation.worker].judge.open[operation.id]
        self.emit(RequestSent(operation, tokens, known.forecast, known.view))
        return Call(
            rid=f"c{self.case}-{operation.id}-{self.requests}",
            tokens=tokens,
            outputs=operation.outputs,
            namespace=operation.namespace,
            logprob_start=operation.logprob_start,
            abort_after_s=operation.abort_after_s,
            top_logprobs=TOP_LOGPROBS if self.fleet.config.weights == "random" else 0,
        )

    def _receive(
        self, worker: Worker, made: Sequence[tuple[Generate, tuple[int, ...]]], answers: list[Answer]
    ) -> None:
        worker.rested = False
        self.events(worker)
        for (operation, tokens), answer in zip(made, answers, strict=True):
            seen = _observation(operation, worker.index, tokens, answer, alone=len(made) == 1)
            self._outputs[operation.id] = answer.output_ids
            self._prompts[operation.id] = (operation.namespace or "", tokens)
            self._seen.append(seen)
            worker.judge.replied(operation, seen)
            self.asked(operation, tokens)
        self.collect(worker)
        failed = [answer for answer in answers if answer.status == "failed"]
        if failed:
            self.failed(worker, failed[0])


def _observation(
    operation: Generate, worker: int, tokens: tuple[int, ...], answer: Answer, alone: bool
) -> Observation:
    return Observation(
        operation=operation.id,
        worker=worker,
        namespace=operation.namespace,
        prompt=tokens,
        requested_outputs=operation.outputs,
        status=answer.status,
        started=answer.started,
        ended=answer.ended,
        output_ids=answer.output_ids,
        prompt_tokens=answer.prompt_tokens,
        cached_tokens=answer.cached_tokens,
        split=answer.split,
        logprob_start=operation.logprob_start,
        alone=alone,
        error=answer.error,
        retractions=answer.retractions,
        first_logprobs=answer.first_logprobs,
    )

"""Carries programs out on a live fleet, operation by operation, and feeds the judges.

Rest is proved where a verdict or a later forecast depends on it: before probes, fillers and flushes, when
asked to idle, and at the end of a case. Everything else goes back to back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tierfuzz.errors import RequestFailed, UsageError
from tierfuzz.fleet import Fleet, Worker
from tierfuzz.observation import Observation
from tierfuzz.program import (
    Burst,
    Fill,
    Flush,
    Generate,
    Hold,
    Idle,
    Operation,
    Program,
    Release,
    Restart,
)
from tierfuzz.resolve import filler_prompts, resolve
from tierfuzz.runevents import Dispatcher, OperationDone, OperationStarted, VerdictGiven
from tierfuzz.verdict import Verdict
from tierfuzz.worker.http import Answer, Call

RESTFUL_ROLES = ("probe", "exact")
FLUSH_BOUND_S = 5.0


class Runner:
    """One fleet, one case after the other: reset(), apply() each operation, finish()."""

    def __init__(self, fleet: Fleet, dispatcher: Dispatcher | None = None) -> None:
        self.fleet = fleet
        self.dispatcher = dispatcher or Dispatcher()
        self.requests = 0
        self.case = 0
        self._outputs: dict[str, tuple[int, ...]] = {}
        self._prompts: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._seen: list[Observation] = []
        self._verdicts: list[Verdict] = []

    # cases -----------------------------------------------------------------------------------------
    def reset(self) -> None:
        """Empty workers and fresh judges: no case depends on an earlier one."""
        self.case += 1
        self._outputs.clear()
        self._prompts.clear()
        self._verdicts.clear()
        for worker in self.fleet.workers:
            self._release(worker)
            if not worker.process.alive() or not self._emptied(worker):
                self.fleet.restart(worker)
            worker.subscriber.sync()
            worker.subscriber.drain()
            worker.subscriber.take_findings()
            self.fleet.renew(worker)
            worker.rested = False

    def _emptied(self, worker: Worker) -> bool:
        try:
            return worker.client.flush(FLUSH_BOUND_S)
        except RequestFailed:
            return False

    def run(self, program: Program) -> list[Verdict]:
        """A whole program on empty workers; its violations and unknowns."""
        self.reset()
        for operation in program.operations:
            self.apply(operation)
        return self.finish()

    def finish(self) -> list[Verdict]:
        """End of a case: release what is held, prove rest, ask the gauges; all verdicts of the case."""
        for worker in self.fleet.workers:
            self._release(worker)
            if self._rest(worker) and self.fleet.driver.fresh_gauges:
                worker.judge.gauges(worker.client.metrics())
            self._collect(worker)
        return list(self._verdicts)

    @property
    def held(self) -> Counter[str]:
        """Checks of this case that held, by oracle."""
        return sum((worker.judge.docket.held for worker in self.fleet.workers), Counter())

    @property
    def reach(self) -> Counter[str]:
        """What this case has reached."""
        return sum((worker.judge.reach for worker in self.fleet.workers), Counter())

    # operations ------------------------------------------------------------------------------------
    def apply(self, operation: Operation) -> None:
        """Carry out one operation; what does not fit becomes a verdict, never an exception."""
        self.dispatcher.emit(OperationStarted(operation))
        before, self._seen = self.requests, []
        if isinstance(operation, Generate):
            self._generate(operation)
        elif isinstance(operation, Fill):
            self._fill(operation)
        elif isinstance(operation, Burst):
            self._burst(operation)
        else:
            self._control(operation)
        self.dispatcher.emit(OperationDone(operation, self.requests - before, tuple(self._seen)))

    def _control(self, operation: Idle | Flush | Hold | Release | Restart) -> None:
        worker = self.worker(operation.worker)
        if isinstance(operation, Idle):
            self._rest(worker)
        elif isinstance(operation, Flush):
            self._flush(worker, operation.id)
        elif isinstance(operation, Hold):
            self._hold(worker)
        elif isinstance(operation, Release):
            self._release(worker)
        else:
            self._restart(worker, operation.id)
        self._collect(worker)

    def worker(self, index: int) -> Worker:
        """A worker by its number; UsageError when the fleet is smaller."""
        if not 0 <= index < len(self.fleet.workers):
            raise UsageError(f"worker {index}: the fleet has workers 0 to {len(self.fleet.workers) - 1}")
        return self.fleet.workers[index]

    # requests --------------------------------------------------------------------------------------
    def _generate(self, operation: Generate) -> None:
        worker = self.worker(operation.worker)
        tokens = resolve(operation.prompt, self._outputs)
        self._make_room_for(worker, len(tokens) + operation.outputs)
        at_rest = operation.role in RESTFUL_ROLES and worker.held_tokens is None and self._rest(worker)
        worker.judge.expect(operation, tokens, at_rest=at_rest)
        call = self._call(operation, tokens)
        answers = (
            worker.client.generate_many([call])
            if operation.abort_after_s is not None
            else [worker.client.generate(call)]
        )
        self._receive(worker, [(operation, tokens)], answers)

    def _burst(self, operation: Burst) -> None:
        for index in sorted({request.worker for request in operation.requests}):
            worker = self.worker(index)
            mine = [request for request in operation.requests if request.worker == index]
            made = [(request, resolve(request.prompt, self._outputs)) for request in mine]
            self._make_room_for(worker, sum(len(tokens) + r.outputs for r, tokens in made))
            worker.judge.expect_together(made)
            calls = [self._call(request, tokens) for request, tokens in made]
            self._receive(worker, made, worker.client.generate_many(calls))

    def _fill(self, operation: Fill) -> None:
        worker = self.worker(operation.worker)
        if worker.held_tokens is None:
            self._rest(worker)
        for request, due in filler_prompts(operation, self.fleet.config):
            if not due and not self._on_device(worker, operation.target):
                break
            self._generate(request)

    def _on_device(self, worker: Worker, target: str) -> bool:
        """Events still claim a device copy of the target's prompt."""
        namespace, tokens = self._prompts.get(target, ("", ()))
        if not tokens or worker.held_tokens is not None:
            return False
        return worker.judge.claims_device(namespace, tokens)

    def _call(self, operation: Generate, tokens: tuple[int, ...]) -> Call:
        self.requests += 1
        return Call(
            rid=f"c{self.case}-{operation.id}-{self.requests}",
            tokens=tokens,
            outputs=operation.outputs,
            namespace=operation.namespace,
            logprob_start=operation.logprob_start,
            abort_after_s=operation.abort_after_s,
        )

    def _receive(
        self, worker: Worker, made: Sequence[tuple[Generate, tuple[int, ...]]], answers: list[Answer]
    ) -> None:
        worker.rested = False
        self._events(worker)
        for (operation, tokens), answer in zip(made, answers, strict=True):
            seen = _observation(operation, worker.index, tokens, answer, alone=len(made) == 1)
            self._outputs[operation.id] = answer.output_ids
            self._prompts[operation.id] = (operation.namespace or "", tokens)
            self._seen.append(seen)
            worker.judge.replied(operation, seen)
        self._collect(worker)
        failed = [answer for answer in answers if answer.status == "failed"]
        if failed:
            self._failed(worker, failed[0])

    def _failed(self, worker: Worker, answer: Answer) -> None:
        """A worker that died or does not answer is reported, and replaced so that the run can go on."""
        if answer.failure in ("http", "shape"):
            raise RequestFailed(answer.error)
        if answer.failure == "timeout":
            worker.judge.transport("hang", answer.error)
        else:
            worker.judge.transport("crash", f"{answer.error}\n{worker.process.log_tail()}")
        self._collect(worker)
        worker.process.kill()
        self.fleet.restart(worker)
        worker.judge.restarted("recovery")

    # control ---------------------------------------------------------------------------------------
    def _rest(self, worker: Worker) -> bool:
        """Prove rest and bring every event in; False when it cannot be said."""
        if worker.rested:
            return True
        try:
            result = self.fleet.settle(worker)
        except RequestFailed as error:
            self._failed(worker, Answer("failed", 0.0, 0.0, failure="unreachable", error=str(error)))
            return False
        self._events(worker)
        worker.rested = result.at_rest
        if result.at_rest:
            worker.judge.rested()
        elif worker.held_tokens is None:
            worker.judge.transport("hang", result.reason)
        return result.at_rest

    def _flush(self, worker: Worker, operation: str) -> None:
        self._release(worker)
        self._rest(worker)
        if not self._emptied(worker):
            worker.judge.transport("hang", f"not idle enough for a flush within {FLUSH_BOUND_S} s")
            return
        worker.judge.flushed(operation)
        worker.rested = False
        self._rest(worker)

    def _hold(self, worker: Worker) -> None:
        if self.fleet.driver.holds_copies and worker.held_tokens is None:
            worker.client.control(copies="hold")
            worker.held_tokens = 0
            worker.judge.holding(True)

    def _release(self, worker: Worker) -> None:
        if worker.held_tokens is None:
            return
        worker.held_tokens = None
        worker.judge.holding(False)
        worker.rested = False
        if worker.process.alive():
            worker.client.control(copies="release")

    def _make_room_for(self, worker: Worker, tokens: int) -> None:
        """Held copies pin device pages: release before requests would have to wait for ever."""
        if worker.held_tokens is None:
            return
        worker.held_tokens += tokens
        if worker.held_tokens > self.fleet.config.device_tokens // 3:
            self._release(worker)

    def _restart(self, worker: Worker, operation: str) -> None:
        self._release(worker)
        self._rest(worker)
        self.fleet.restart(worker)
        worker.judge.restarted(operation)
        worker.rested = False

    # events and verdicts ---------------------------------------------------------------------------
    def _events(self, worker: Worker) -> None:
        for batch in worker.subscriber.drain():
            worker.judge.batch(batch)
        for finding in worker.subscriber.take_findings():
            worker.judge.finding(finding)

    def _collect(self, worker: Worker) -> None:
        for verdict in worker.judge.take_verdicts():
            self._verdicts.append(verdict)
            self.dispatcher.emit(VerdictGiven(verdict))


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
    )

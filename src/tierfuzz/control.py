"""What a runner does to one worker besides requests: rest, flush, hold, restart, recovery, events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tierfuzz.control_consumer import ConsumerControl
from tierfuzz.control_operations import (
    ControlOperation,
    StorageOperation,
    change_storage,
    emptied,
    permitted,
    restored,
)
from tierfuzz.errors import EnvironmentFailure, RequestFailed, UsageError
from tierfuzz.fleet import Fleet, Worker
from tierfuzz.program import (
    ConsumerOperation,
    Flush,
    Hold,
    Idle,
    Release,
    Restart,
)
from tierfuzz.runevents import BatchesSeen, Dispatcher, RestSought, RunEvent, VerdictGiven
from tierfuzz.verdict import Verdict
from tierfuzz.worker.http import Answer

FLUSH_BOUND_S = 5.0


class WorkerControl(ConsumerControl):
    """Base of the runner; of this case: `verdicts`, how many workers were `lost` (replaced or stuck), and the
    `tape` of its events, for whoever has to explain what happened."""

    def __init__(self, fleet: Fleet, dispatcher: Dispatcher) -> None:
        super().__init__(fleet)
        self.dispatcher = dispatcher
        self.verdicts: list[Verdict] = []
        self.lost = 0
        self.tape: list[RunEvent] = []

    def emit(self, event: RunEvent) -> None:
        """Onto the tape, and to every listener."""
        self.tape.append(event)
        self.dispatcher.emit(event)

    @property
    def flush_bound_s(self) -> float:
        """Seconds until a flush counts as refused for good."""
        return self.fleet.config.patience_s or FLUSH_BOUND_S

    def control(self, operation: ControlOperation | ConsumerOperation) -> None:
        worker = self.worker(operation.worker)
        if isinstance(operation, ConsumerOperation):
            self.consumer(operation)
            self.collect(worker)
            return
        with self.answering(worker):
            self._control(worker, permitted(operation, self.fleet.config))
        self.collect(worker)

    def _control(self, worker: Worker, operation: ControlOperation) -> None:
        if isinstance(operation, Idle):
            self.rest(worker)
        elif isinstance(operation, Flush):
            self.flush(worker, operation.id)
        elif isinstance(operation, Hold):
            self.hold(worker)
        elif isinstance(operation, Release):
            self.release(worker)
        elif isinstance(operation, Restart):
            self.restart(worker, operation.id)
        else:
            self.storage(worker, operation)

    def worker(self, index: int) -> Worker:
        """A worker by its number; UsageError when the fleet is smaller."""
        if not 0 <= index < len(self.fleet.workers):
            raise UsageError(f"worker {index}: the fleet has workers 0 to {len(self.fleet.workers) - 1}")
        return self.fleet.workers[index]

    def clear(self, worker: Worker) -> None:
        """Before a case: nothing is in the worker, or, where it may not be emptied, it is at rest."""
        if not self.fleet.config.starts_empty:
            rest = self.fleet.settle(worker)
            if not rest.at_rest:
                raise EnvironmentFailure(
                    f"{worker.launch.base_url} was not at rest before a case: {rest.reason}; "
                    "nobody else may use an attached worker while it is tested"
                )
            return
        self.release(worker)
        bound = self.flush_bound_s
        if worker.stuck or not worker.process.alive() or not restored(worker, self.fleet, bound):
            self.fleet.restart(worker)
        if not emptied(worker, self.fleet.config, bound):
            self.fleet.restart(worker)
            emptied(worker, self.fleet.config, bound)

    def failed(self, worker: Worker, answer: Answer) -> None:
        """A worker that died or does not answer is reported, and replaced so that the run can go on."""
        if answer.failure in ("http", "shape"):
            raise RequestFailed(answer.error)
        if answer.failure == "timeout":
            worker.judge.transport("hang", answer.error)
        else:
            worker.judge.transport("crash", f"{answer.error}\n{worker.process.log_tail()}")
        self.collect(worker)
        self.lost += 1
        worker.process.kill()
        self._replaced(worker, "recovery")

    def _replaced(self, worker: Worker, operation: str) -> None:
        """Start the process again: nothing is left in any of its ranks."""
        self.fleet.restart(worker)
        for mate in self.fleet.mates(worker):
            mate.judge.restarted(operation)
            mate.rested = False

    def _give_up(self, worker: Worker) -> None:
        """Nothing more can be learned of this worker in this case, and each wait is long."""
        self.lost += 1
        for mate in self.fleet.mates(worker):
            mate.stuck = True

    @contextmanager
    def answering(self, worker: Worker) -> Iterator[None]:
        """What the worker leaves unanswered inside is a crash or a hang; it is replaced, as in failed()."""
        try:
            yield
        except RequestFailed as error:
            if not error.failure:
                raise
            self.failed(worker, Answer("failed", 0.0, 0.0, failure=error.failure, error=str(error)))

    # control ---------------------------------------------------------------------------------------
    def rest(self, worker: Worker) -> bool:
        """Prove rest and bring every event in; False when it cannot be said."""
        if worker.rested:
            return True
        if worker.stuck or worker.held_tokens is not None:
            self.events(worker)  # held copies are in flight until they are released: waiting cannot help
            return False
        with self.answering(worker):
            result = self.fleet.settle(worker)
            self.events(worker)
            worker.rested = result.at_rest
            self.emit(RestSought(worker.index, result.at_rest, result.reason))
            if result.at_rest:
                worker.judge.rested()
                self.delivered(worker.index)
            else:
                worker.judge.transport("hang", result.reason)
                self._give_up(worker)
        return worker.rested

    def levels(self, worker: Worker) -> None:
        """What the worker says of its pools at rest."""
        if worker.rested and self.fleet.driver.fresh_gauges:
            with self.answering(worker):
                worker.judge.gauges(worker.client.metrics())

    def flush(self, worker: Worker, operation: str) -> None:
        """Empty all ranks of a worker; levels are asked before, as nothing is left of them afterwards."""
        self.release(worker)
        for mate in self.fleet.mates(worker):
            self.rest(mate)
            self.levels(mate)
            self.audit_consumer(mate.index)
        if worker.stuck:
            return
        if not worker.client.flush(self.flush_bound_s):
            worker.judge.transport("hang", f"not idle enough for a flush within {self.flush_bound_s} s")
            self._give_up(worker)
            return
        for mate in self.fleet.mates(worker):
            mate.judge.flushed(operation)
            mate.rested = False
            self.rest(mate)

    def hold(self, worker: Worker) -> None:
        """Hold copies back; not with storage, whose prefetches a request waits for.

        From rest: what has not landed yet would be held too, and pins pages that nobody has counted.
        """
        storage = self.fleet.config.storage_threshold
        possible = self.fleet.driver.holds_copies and not storage and worker.held_tokens is None
        mates = self.fleet.mates(worker)
        if possible and all(self.rest(mate) for mate in mates):
            worker.client.control(copies="hold")
            for mate in mates:
                mate.held_tokens = 0
                mate.judge.holding(True)

    def release(self, worker: Worker) -> None:
        if worker.held_tokens is None:
            return
        for mate in self.fleet.mates(worker):
            mate.held_tokens = None
            mate.judge.holding(False)
            mate.rested = False
        with self.answering(worker):
            worker.client.control(copies="release")

    def make_room_for(self, worker: Worker, tokens: int) -> None:
        """Held copies pin device pages: release before requests would have to wait for ever."""
        if worker.held_tokens is None:
            return
        worker.held_tokens += tokens
        if worker.held_tokens > self.fleet.config.device_tokens // 3:
            self.release(worker)

    def restart(self, worker: Worker, operation: str) -> None:
        self.release(worker)
        for mate in self.fleet.mates(worker):
            self.rest(mate)
        self._replaced(worker, operation)

    def storage(self, worker: Worker, operation: StorageOperation) -> None:
        """Clear, attach or detach storage at rest; a refusal changes nothing and is no violation."""
        self.release(worker)
        if self.rest(worker) and self.fleet.config.storage_threshold:
            change_storage(worker, operation, self.fleet.config.storage_threshold)

    # events and verdicts ---------------------------------------------------------------------------
    def events(self, worker: Worker) -> None:
        batches = worker.subscriber.drain()
        if batches:
            self.emit(BatchesSeen(worker.index, tuple(batches)))
        for batch in batches:
            worker.judge.batch(worker.own(batch))
        for finding in worker.subscriber.take_findings():
            worker.judge.finding(finding)

    def collect(self, worker: Worker) -> None:
        for verdict in [*worker.judge.take_verdicts(), *self.router_verdicts()]:
            self.verdicts.append(verdict)
            self.emit(VerdictGiven(verdict))

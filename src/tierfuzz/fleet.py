"""A fleet: workers of one configuration, started, checked, restarted and ended together."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType

from tierfuzz.clock import SYSTEM_CLOCK, Clock
from tierfuzz.engines.base import Control, EngineDriver, Launch
from tierfuzz.engines.registry import driver_of
from tierfuzz.errors import EnvironmentFailure, UsageError
from tierfuzz.events import Batch
from tierfuzz.fleet_check import check
from tierfuzz.fleet_worker import Audience, Worker
from tierfuzz.oracles.judge import Judge
from tierfuzz.program import FleetConfig
from tierfuzz.worker.attached import AttachedProcess
from tierfuzz.worker.http import WorkerClient
from tierfuzz.worker.ports import ReservedPorts
from tierfuzz.worker.process import WorkerProcess
from tierfuzz.worker.rest import RestResult, settle
from tierfuzz.worker.subscriber import EventSubscriber

RELEASE_BOUND_S = 60.0  # a large pinned host pool is given back 26 s after a kill (T56)


__all__ = ["Fleet", "Worker"]


class Fleet:
    """Context manager over the workers of one configuration; logs are kept only after a failure."""

    def __init__(
        self,
        config: FleetConfig,
        log_dir: Path,
        clock: Clock = SYSTEM_CLOCK,
        driver: EngineDriver | None = None,
    ) -> None:
        self.config = config
        self.driver = driver or driver_of(config)
        self.clock = clock
        self.workers: list[Worker] = []
        self.audience: Audience | None = None
        self._log_dir = log_dir
        self._ports: list[ReservedPorts] = []

    def __enter__(self) -> Fleet:
        """Start."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; keep the logs when something went wrong."""
        self.stop(keep_logs=kind is not None and issubclass(kind, Exception))

    @property
    def request_bound_s(self) -> float:
        """Seconds until a reply counts as not coming."""
        return self.config.patience_s or self.driver.request_bound_s

    # life ------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Start all workers, wait until they are healthy, and check that they are what was asked for."""
        if reason := self.driver.unavailable(self.config):
            raise EnvironmentFailure(reason)
        try:
            if self.config.ranks > 1 and Control.RANKS not in self.driver.controls:
                raise UsageError(f"ranks={self.config.ranks}: engine {self.driver.name} is driven with one")
            for number in range(self.config.workers):
                self._launch(number)
            for worker in self.workers:
                self._check(worker)
        except BaseException:
            self.stop(keep_logs=True)
            raise

    def _launch(self, number: int) -> None:
        """Booked before it runs, so that whatever interrupts a start, stop() knows of it."""
        ports = ReservedPorts(self.driver.ports_needed, self.config.ranks)
        self._ports.append(ports)
        launch = self.driver.launch(self.config, number, list(ports.numbers))
        env = {**launch.env, **self._storage_env(number)}
        process = self._process(launch, number, env)
        for rank in range(self.config.ranks):
            self._book(launch.of_rank(rank), process, rank if self.config.ranks > 1 else None)
        process.start()

    def _book(self, launch: Launch, process: WorkerProcess | AttachedProcess, rank: int | None) -> None:
        index, client = len(self.workers), self._client(launch, rank)
        subscriber, judge = self._subscribe(launch, index), self._judge(index)
        self.workers.append(Worker(index, launch, process, client, subscriber, judge, rank=rank))

    def _client(self, launch: Launch, rank: int | None) -> WorkerClient:
        return WorkerClient(launch.base_url, self.clock, launch.api_key, self.request_bound_s, rank)

    def mates(self, worker: Worker) -> list[Worker]:
        """The ranks of its process, itself among them: mostly it alone."""
        return [mate for mate in self.workers if mate.process is worker.process]

    def _process(self, launch: Launch, index: int, env: dict[str, str]) -> WorkerProcess | AttachedProcess:
        if not launch.command:
            return AttachedProcess(launch.base_url)
        return WorkerProcess(launch.command, self._log_dir / f"worker-{index}.log", env)

    def _storage_env(self, index: int) -> dict[str, str]:
        if not self.config.storage_threshold:
            return {}
        return {self.driver.storage_variable: str(self._storage_folder(index))}

    def _storage_folder(self, index: int) -> Path:
        return self._log_dir / f"storage-{index}"

    def _subscribe(self, launch: Launch, index: int) -> EventSubscriber:
        subscriber = EventSubscriber(
            launch.events_endpoint, launch.replay_endpoint, self.clock, launch.topic, launch.events_bind
        )
        subscriber.tap = partial(self._heard, index)
        return subscriber

    def _heard(self, index: int, batch: Batch, payload: bytes) -> None:
        if self.audience is not None:
            self.audience.heard(index, batch, payload)

    def _judge(self, index: int) -> Judge:
        traits = self.driver.traits(self.config)
        known = self.workers[index].event_block if index < len(self.workers) else None
        return Judge(self.config, index, replace(traits, advertised=known))

    def _check(self, worker: Worker) -> None:
        check(worker, self.config, self.driver, self.clock)

    def restart(self, worker: Worker) -> None:
        """End one worker process and start it again at the same address, empty."""
        mates = self.mates(worker)
        self._stop_process(worker)
        for mate in mates:
            mate.client.close()
            mate.subscriber.close()
        self._ports[worker.index // self.config.ranks].wait_until_free(
            self.clock, RELEASE_BOUND_S, f"worker {worker.index} ({worker.launch.base_url})"
        )
        for mate in mates:
            mate.subscriber = self._subscribe(mate.launch, mate.index)
            if self.audience is not None:
                self.audience.restarted(mate.index)
        worker.process.start()
        for mate in mates:
            mate.client = self._client(mate.launch, mate.rank)
            mate.held_tokens = None
            mate.reconfigured = mate.stuck = False
            self._check(mate)

    def renew(self, worker: Worker) -> None:
        """A judge without history (a new case)."""
        worker.judge = self._judge(worker.index)

    def settle(self, worker: Worker) -> RestResult:
        """Wait for rest within the engine's bound."""
        return settle(
            worker.client,
            worker.subscriber,
            self.clock,
            self.config.patience_s or self.driver.rest_bound_s,
            self.driver.confirmations,
        )

    def stop(self, keep_logs: bool = False) -> None:
        """End every worker; nothing stays behind but, if wanted, the logs. Whatever fails, all are ended."""
        with ExitStack() as stack:
            while self._ports:
                stack.callback(self._ports.pop().close)
            while self.workers:
                stack.callback(self._end, self.workers.pop(), keep_logs)

    def _end(self, worker: Worker, keep_logs: bool) -> None:
        with ExitStack() as stack:
            if not keep_logs:
                stack.callback(worker.process.remove_log)
            stack.callback(shutil.rmtree, self._storage_folder(worker.index), ignore_errors=True)
            stack.callback(worker.subscriber.close)
            stack.callback(worker.client.close)
            stack.callback(self._stop_process, worker)  # runs first: a client may wait for what it has sent

    def _stop_process(self, worker: Worker) -> None:
        """End it, and remove what the engine leaves behind."""
        try:
            worker.process.stop(self.driver.stop_grace_s)
        finally:
            while worker.litter:
                worker.litter.pop().unlink(missing_ok=True)

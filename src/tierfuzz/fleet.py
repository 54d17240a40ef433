"""A fleet: workers of one configuration, started, checked, restarted and ended together."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tierfuzz.clock import SYSTEM_CLOCK, Clock
from tierfuzz.engines.base import EngineDriver, Launch
from tierfuzz.engines.registry import driver_for
from tierfuzz.errors import EnvironmentFailure, WorkerNotReady
from tierfuzz.oracles.judge import Judge
from tierfuzz.program import FleetConfig
from tierfuzz.worker.http import WorkerClient
from tierfuzz.worker.ports import ReservedPorts
from tierfuzz.worker.process import WorkerProcess
from tierfuzz.worker.readiness import wait_until_healthy
from tierfuzz.worker.rest import RestResult, settle
from tierfuzz.worker.subscriber import EventSubscriber

EVENTS_BOUND_S = 5.0


@dataclass
class Worker:
    """One live worker. `held_tokens` were sent since its copies are held back, or None when they are not."""

    index: int
    launch: Launch
    process: WorkerProcess
    client: WorkerClient
    subscriber: EventSubscriber
    judge: Judge
    held_tokens: int | None = None
    rested: bool = False
    reconfigured: bool = False


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
        self.driver = driver or driver_for(config.engine)
        self.clock = clock
        self.workers: list[Worker] = []
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

    # life ------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Start all workers, wait until they are healthy, and check that they are what was asked for."""
        try:
            for index in range(self.config.workers):
                self.workers.append(self._launch(index))
            for worker in self.workers:
                self._check(worker)
        except BaseException:
            self.stop(keep_logs=True)
            raise

    def _launch(self, index: int) -> Worker:
        ports = ReservedPorts(self.driver.ports_needed)
        self._ports.append(ports)
        launch = self.driver.launch(self.config, index, list(ports.numbers))
        env = {**launch.env, **self._storage_env(index)}
        process = WorkerProcess(launch.command, self._log_dir / f"worker-{index}.log", env)
        process.start()
        client = WorkerClient(launch.base_url, self.clock, launch.api_key, self.driver.request_bound_s)
        return Worker(index, launch, process, client, self._subscribe(launch), self._judge(index))

    def _storage_env(self, index: int) -> dict[str, str]:
        if not self.config.storage_threshold:
            return {}
        return {self.driver.storage_variable: str(self._log_dir / f"storage-{index}")}

    def _subscribe(self, launch: Launch) -> EventSubscriber:
        return EventSubscriber(launch.events_endpoint, launch.replay_endpoint, self.clock, launch.topic)

    def _judge(self, index: int) -> Judge:
        return Judge(self.config, index, self.driver.traits(self.config))

    def _check(self, worker: Worker) -> None:
        """Healthy, with the sizes that were asked for, and its events really arrive."""
        wait_until_healthy(worker.process, worker.client, self.clock, self.driver.ready_bound_s)
        has = self.driver.capacities(worker.client.server_info())
        asked = (
            self.config.page_size,
            self.config.device_tokens,
            self.config.host_tokens,
            self.config.policy,
        )
        seen = (has.page_size, has.device_tokens, has.host_tokens or self.config.host_tokens, has.policy)
        if seen != asked:
            raise EnvironmentFailure(
                f"{worker.launch.base_url}: page size, device tokens, host tokens, policy are {seen}; asked "
                f"were {asked}"
            )
        if worker.subscriber.sync(EVENTS_BOUND_S) is None:
            raise WorkerNotReady(
                f"{worker.launch.base_url}: no events from {worker.launch.replay_endpoint} within "
                f"{EVENTS_BOUND_S} s; log:\n{worker.process.log_tail()}"
            )

    def restart(self, worker: Worker) -> None:
        """End one worker process and start it again at the same address, empty."""
        worker.process.stop()
        worker.client.close()
        worker.subscriber.close()
        worker.process.start()
        worker.client = WorkerClient(
            worker.launch.base_url, self.clock, worker.launch.api_key, self.driver.request_bound_s
        )
        worker.subscriber = self._subscribe(worker.launch)
        worker.held_tokens = None
        worker.reconfigured = False
        self._check(worker)

    def renew(self, worker: Worker) -> None:
        """A judge without history (a new case)."""
        worker.judge = self._judge(worker.index)

    def settle(self, worker: Worker) -> RestResult:
        """Wait for rest within the engine's bound."""
        return settle(
            worker.client,
            worker.subscriber,
            self.clock,
            self.driver.rest_bound_s,
            self.driver.confirmations,
        )

    def stop(self, keep_logs: bool = False) -> None:
        """End every worker; nothing stays behind but, if wanted, the logs."""
        for worker in self.workers:
            worker.process.stop()
            worker.client.close()
            worker.subscriber.close()
            if not keep_logs:
                worker.process.remove_log()
            shutil.rmtree(self._log_dir / f"storage-{worker.index}", ignore_errors=True)
        self.workers.clear()
        while self._ports:
            self._ports.pop().close()

"""A fleet: workers of one configuration, started, checked, restarted and ended together."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType

from tierfuzz.clock import SYSTEM_CLOCK, Clock
from tierfuzz.engines.base import EngineDriver, Launch
from tierfuzz.engines.registry import driver_of
from tierfuzz.errors import EnvironmentFailure, RequestFailed, WorkerNotReady
from tierfuzz.events import Batch
from tierfuzz.fleet_worker import Audience, Worker
from tierfuzz.oracles.judge import Judge
from tierfuzz.program import FleetConfig
from tierfuzz.worker.attached import AttachedProcess
from tierfuzz.worker.http import WorkerClient
from tierfuzz.worker.ports import ReservedPorts
from tierfuzz.worker.process import WorkerProcess
from tierfuzz.worker.readiness import wait_until_healthy
from tierfuzz.worker.rest import RestResult, settle
from tierfuzz.worker.subscriber import EventSubscriber

EVENTS_BOUND_S = 5.0
SILENCE_BOUND_S = 1.0
RELEASE_BOUND_S = 60.0  # a large pinned host pool is given back 26 s after a kill (T56)
FLUSH_BOUND_S = 1.0
FIRST_WAIT_S, LONGEST_WAIT_S = 0.001, 0.05


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
            for index in range(self.config.workers):
                self._launch(index)
            for worker in self.workers:
                self._check(worker)
        except BaseException:
            self.stop(keep_logs=True)
            raise

    def _launch(self, index: int) -> None:
        """Booked before it runs, so that whatever interrupts a start, stop() knows of it."""
        ports = ReservedPorts(self.driver.ports_needed)
        self._ports.append(ports)
        launch = self.driver.launch(self.config, index, list(ports.numbers))
        env = {**launch.env, **self._storage_env(index)}
        process = self._process(launch, index, env)
        client = WorkerClient(launch.base_url, self.clock, launch.api_key, self.request_bound_s)
        worker = Worker(index, launch, process, client, self._subscribe(launch, index), self._judge(index))
        self.workers.append(worker)
        process.start()

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
        """Healthy, with the sizes that were asked for, and its events really arrive."""
        wait_until_healthy(worker.process, worker.client, self.clock, self.driver.ready_bound_s)
        worker.litter.update(self.driver.litter(worker.process.pid))
        info = worker.client.server_info()
        has = self.driver.capacities(info)
        worker.event_block = has.event_block
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
        if different := self.driver.differences(self.config, info):
            raise EnvironmentFailure(
                f"{worker.launch.base_url}: the worker is not what was asked for: {'; '.join(different)}"
            )
        self._hear(worker)

    def _hear(self, worker: Worker) -> None:
        """Its events can be replayed, and arrive live: those of the start, or else those of a flush (which a
        worker that may not be emptied is spared: the preflight has heard it).

        A worker whose flushes publish nothing is not refused: that is what the oracles are for.
        """
        started, wait = self.clock.monotonic(), FIRST_WAIT_S
        first = self._newest(worker)
        while self.config.starts_empty and not worker.subscriber.counts["messages"]:
            self._flush(worker)
            self.clock.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT_S)
            silent = self._newest(worker) == first
            if self.clock.monotonic() - started >= (SILENCE_BOUND_S if silent else EVENTS_BOUND_S):
                if silent:
                    return
                raise self._deaf(worker, worker.launch.events_endpoint)

    def _newest(self, worker: Worker) -> int:
        newest = worker.subscriber.sync(EVENTS_BOUND_S)
        if newest is None:
            raise self._deaf(worker, worker.launch.replay_endpoint)
        return newest

    def _flush(self, worker: Worker) -> None:
        try:
            worker.client.flush(FLUSH_BOUND_S)
        except RequestFailed:
            worker.process.check_alive()  # only what is published counts here; a refusal publishes nothing

    def _deaf(self, worker: Worker, endpoint: str | None) -> WorkerNotReady:
        return WorkerNotReady(
            f"{worker.launch.base_url}: no events from {endpoint} within "
            f"{EVENTS_BOUND_S} s; log:\n{worker.process.log_tail()}"
        )

    def restart(self, worker: Worker) -> None:
        """End one worker process and start it again at the same address, empty."""
        self._stop_process(worker)
        worker.client.close()
        worker.subscriber.close()
        self._ports[worker.index].wait_until_free(
            self.clock, RELEASE_BOUND_S, f"worker {worker.index} ({worker.launch.base_url})"
        )
        worker.subscriber = self._subscribe(worker.launch, worker.index)
        if self.audience is not None:
            self.audience.restarted(worker.index)
        worker.process.start()
        worker.client = WorkerClient(
            worker.launch.base_url, self.clock, worker.launch.api_key, self.request_bound_s
        )
        worker.held_tokens = None
        worker.reconfigured = worker.stuck = False
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

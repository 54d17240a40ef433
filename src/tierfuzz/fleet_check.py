"""What is asked of a worker that has just started: health, sizes, and that its events really arrive."""

from __future__ import annotations

from tierfuzz.clock import Clock
from tierfuzz.engines.base import EngineDriver
from tierfuzz.errors import EnvironmentFailure, RequestFailed, WorkerNotReady
from tierfuzz.fleet_worker import Worker
from tierfuzz.program import FleetConfig
from tierfuzz.worker.readiness import wait_until_healthy

EVENTS_BOUND_S = 5.0
SILENCE_BOUND_S = 1.0
FLUSH_BOUND_S = 1.0
FIRST_WAIT_S, LONGEST_WAIT_S = 0.001, 0.05


def check(worker: Worker, config: FleetConfig, driver: EngineDriver, clock: Clock) -> None:
    """Healthy, with the sizes that were asked for, and its events really arrive."""
    wait_until_healthy(worker.process, worker.client, clock, driver.ready_bound_s)
    worker.litter.update(driver.litter(worker.process.pid))
    info = worker.client.server_info()
    has = driver.capacities(info)
    worker.event_block = has.event_block
    asked = (config.page_size, config.device_tokens, config.host_tokens, config.policy)
    seen = (has.page_size, has.device_tokens, has.host_tokens or config.host_tokens, has.policy)
    if seen != asked:
        raise EnvironmentFailure(
            f"{worker.launch.base_url}: page size, device tokens, host tokens, policy are {seen}; asked "
            f"were {asked}"
        )
    if different := driver.differences(config, info):
        raise EnvironmentFailure(
            f"{worker.launch.base_url}: the worker is not what was asked for: {'; '.join(different)}"
        )
    _hear(worker, config, clock)


def _hear(worker: Worker, config: FleetConfig, clock: Clock) -> None:
    """Its events can be replayed, and arrive live: those of the start, or else those of a flush (which a
    worker that may not be emptied is spared: the preflight has heard it).

    A worker whose flushes publish nothing is not refused: that is what the oracles are for.
    """
    started, wait = clock.monotonic(), FIRST_WAIT_S
    first = _newest(worker)
    while config.starts_empty and not worker.subscriber.counts["messages"]:
        _flush(worker)
        clock.sleep(wait)
        wait = min(2 * wait, LONGEST_WAIT_S)
        silent = _newest(worker) == first
        if clock.monotonic() - started >= (SILENCE_BOUND_S if silent else EVENTS_BOUND_S):
            if silent:
                return
            raise _deaf(worker, worker.launch.events_endpoint)


def _newest(worker: Worker) -> int:
    newest = worker.subscriber.sync(EVENTS_BOUND_S)
    if newest is None:
        raise _deaf(worker, worker.launch.replay_endpoint)
    return newest


def _flush(worker: Worker) -> None:
    try:
        worker.client.flush(FLUSH_BOUND_S)
    except RequestFailed:
        worker.process.check_alive()  # only what is published counts here; a refusal publishes nothing


def _deaf(worker: Worker, endpoint: str | None) -> WorkerNotReady:
    return WorkerNotReady(
        f"{worker.launch.base_url}: no events from {endpoint} within "
        f"{EVENTS_BOUND_S} s; log:\n{worker.process.log_tail()}"
    )

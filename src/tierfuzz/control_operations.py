"""Operations that control one worker, and which of them are permitted on a fleet."""

from __future__ import annotations

from tierfuzz.errors import RequestFailed
from tierfuzz.fleet import Fleet, Worker
from tierfuzz.program import Attach, ClearStorage, Detach, FleetConfig, Flush, Hold, Idle, Release, Restart

StorageOperation = ClearStorage | Attach | Detach
ControlOperation = Idle | Flush | Hold | Release | Restart | StorageOperation


def permitted(operation: ControlOperation, fleet: FleetConfig) -> ControlOperation:
    """What may be done instead: attached workers are never ended, and changed only where that is allowed."""
    if fleet.attached and isinstance(operation, Restart):
        operation = Flush(operation.id, operation.worker)
    return operation if fleet.starts_empty else Idle(operation.id, operation.worker)


def change_storage(worker: Worker, operation: StorageOperation, threshold: int) -> None:
    """Clear, attach or detach the storage of a worker at rest; `threshold` in tokens. It may refuse."""
    if isinstance(operation, ClearStorage):
        worker.client.clear_storage()
        worker.judge.storage.clear()
        return
    if isinstance(operation, Detach):
        done = worker.client.detach_storage()
    else:
        done = worker.client.attach_storage(operation.policy, threshold)
    if done:
        worker.reconfigured = True
        worker.judge.reconfigured(attached=isinstance(operation, Attach))


def restored(worker: Worker, fleet: Fleet, bound_s: float) -> bool:
    """Storage is attached as it was, again where a start is dear; False where only a start will do."""
    config, dear = fleet.config, fleet.driver.dear_restarts
    if not worker.reconfigured or not dear or not emptied(worker, config, bound_s):
        return not worker.reconfigured
    try:
        worker.reconfigured = not worker.client.attach_storage(config.policy, config.storage_threshold)
    except RequestFailed:
        return False
    return not worker.reconfigured


def emptied(worker: Worker, config: FleetConfig, bound_s: float) -> bool:
    """Device and host are empty now, and storage where there is one; False when that was refused."""
    try:
        done = worker.client.flush(bound_s)
        if config.storage_threshold:
            worker.client.clear_storage()  # after the flush: copies that landed late were written
        return done
    except RequestFailed:
        return False

"""One live worker of a fleet, and who hears every message beside its judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from tierfuzz.engines.base import Launch
from tierfuzz.events import Batch
from tierfuzz.oracles.judge import Judge
from tierfuzz.worker.attached import AttachedProcess
from tierfuzz.worker.http import WorkerClient
from tierfuzz.worker.process import WorkerProcess
from tierfuzz.worker.subscriber import EventSubscriber


@dataclass
class Worker:
    """One live worker. `held_tokens` were sent since its copies are held back, or None when they are not;
    `index`: the number that programs use; each rank of a process is one of these (`rank` None: it has none).
    `stuck`: it did not come to rest, or refused a flush, when it should have; `event_block` is the block size
    that it advertises, where it does."""

    index: int
    launch: Launch
    process: WorkerProcess | AttachedProcess
    client: WorkerClient
    subscriber: EventSubscriber
    judge: Judge
    held_tokens: int | None = None
    rested: bool = False
    reconfigured: bool = False
    stuck: bool = False
    event_block: int | None = None
    rank: int | None = None

    def own(self, batch: Batch) -> Batch:
        """The batch with its rank counted from the worker's own, as its judge knows one only, rank 0."""
        return msgspec.structs.replace(batch, rank=batch.rank - self.rank) if self.rank else batch

    litter: set[Path] = field(default_factory=set)


class Audience(Protocol):
    """One for a whole fleet: a consumer, say."""

    def heard(self, worker: int, batch: Batch, payload: bytes) -> None:
        """A message; those of a worker come in order, each once."""

    def restarted(self, worker: int) -> None:
        """The process is another one from now on."""

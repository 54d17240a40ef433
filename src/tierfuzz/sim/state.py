"""One simulated worker put together: engine, faults, copy gate, event sockets, scheduler."""

from __future__ import annotations

import os
import random
from pathlib import Path

from tierfuzz.clock import SYSTEM_CLOCK, Clock
from tierfuzz.codec import Wire
from tierfuzz.faults.registry import make_fault
from tierfuzz.model.config import StorageConfig
from tierfuzz.model.engine import Engine
from tierfuzz.model.faults import wrap
from tierfuzz.program import WritePolicy
from tierfuzz.sim.config import PrefetchPolicy, SimOptions
from tierfuzz.sim.gate import CopyGate
from tierfuzz.sim.loop import Scheduler
from tierfuzz.sim.publisher import Publisher
from tierfuzz.sim.storage import STORAGE_FOLDER_VARIABLE, FileStorage

STORAGE_CLASS = "HiCacheFile"


class SimWorker:
    """What the HTTP handlers serve. Opens the event sockets; close() gives them back."""

    def __init__(self, options: SimOptions, clock: Clock = SYSTEM_CLOCK) -> None:
        self.options = options
        self.clock = clock
        self.started = clock.wall()
        self.port = options.port  # the real one, once the server listens
        rules = options.rules()
        faults = [make_fault(name) for name in options.plants]
        self.engine = Engine(options.engine_config(), rules, faults)
        if folder := os.environ.get(STORAGE_FOLDER_VARIABLE):
            self.engine.cache.storage = FileStorage(Path(folder), options.served_model_name)
        # Each source of randomness has its own generator, so that one delay does not shift another.
        gate = CopyGate(random.Random(f"{options.seed}/copies"), options.ack_delay_ms / 1000, clock)
        self.engine.copies.gate = gate
        self.publisher: Publisher | None = None
        if options.events is not None:
            wire: Wire = "map" if rules.wire == "map" else "array"
            rng = random.Random(f"{options.seed}/publish")
            self.publisher = Publisher(options.events, wire, clock, rng, options.publish_delay_ms / 1000)
            for fault in faults:
                wrap("publisher", self.publisher, self.publisher, fault)
        self.scheduler = Scheduler(self.engine, gate, self.publisher, options.step_delay_ms / 1000)
        self.storage_backend = options.storage_backend
        self.storage_policy: PrefetchPolicy = options.storage_policy
        self.storage_extra = options.storage_extra

    @property
    def policy(self) -> WritePolicy:
        """The write policy in force."""
        return self.engine.config.policy

    def attach(
        self,
        policy: WritePolicy,
        backend: str | None,
        prefetch: PrefetchPolicy,
        extra: str | None,
        threshold: int,
    ) -> None:
        """Change write policy and storage of an idle engine; `threshold` in tokens."""
        self.engine.reconfigure(policy, StorageConfig(threshold) if backend else None)
        self.storage_backend, self.storage_policy, self.storage_extra = backend, prefetch, extra

    def close(self) -> None:
        """Fail what is open and close the event sockets."""
        self.scheduler.stop()
        if self.publisher is not None:
            self.publisher.close()

"""One rank of a simulated worker: an engine of its own, its copy gate, event sockets and scheduler (3.1)."""

from __future__ import annotations

import os
import random
from pathlib import Path

from tierfuzz.clock import Clock
from tierfuzz.codec import Wire
from tierfuzz.faults.registry import make_fault
from tierfuzz.model.engine import Engine
from tierfuzz.model.faults import wrap
from tierfuzz.sim.config import SimOptions
from tierfuzz.sim.gate import CopyGate
from tierfuzz.sim.loop import Scheduler
from tierfuzz.sim.publisher import Publisher
from tierfuzz.sim.storage import STORAGE_FOLDER_VARIABLE, FileStorage


class Rank:
    """Number `number` of the data-parallel ranks of a worker, which share nothing but its HTTP port."""

    def __init__(self, options: SimOptions, number: int, clock: Clock) -> None:
        self.number = number
        rules = options.rules()
        faults = [make_fault(name) for name in options.plants]
        self.engine = Engine(options.engine_config(), rules, faults)
        if folder := os.environ.get(STORAGE_FOLDER_VARIABLE):
            self.engine.cache.storage = FileStorage(Path(folder), options.served_model_name)
        # Each source of randomness has its own generator, so that one delay does not shift another.
        gate = CopyGate(self._dice(options, "copies"), options.ack_delay_ms / 1000, clock)
        self.engine.copies.gate = gate
        self.publisher: Publisher | None = None
        if options.events is not None:
            wire: Wire = "map" if rules.wire == "map" else "array"
            dice, delay = self._dice(options, "publish"), options.publish_delay_ms / 1000
            self.publisher = Publisher(options.events, wire, clock, dice, delay, number)
            for fault in faults:
                wrap("publisher", self.publisher, self.publisher, fault)
        self.scheduler = Scheduler(self.engine, gate, self.publisher, options.step_delay_ms / 1000)

    def _dice(self, options: SimOptions, what: str) -> random.Random:
        rank = f"/{self.number}" if self.number else ""
        return random.Random(f"{options.seed}/{what}{rank}")

    def close(self) -> None:
        """Fail what is open and close the event sockets."""
        self.scheduler.stop()
        if self.publisher is not None:
            self.publisher.close()

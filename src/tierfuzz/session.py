"""Fleets that live longer than a case: started when first needed, shared, ended together."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

from tierfuzz.fleet import Fleet
from tierfuzz.program import FleetConfig
from tierfuzz.runevents import Dispatcher
from tierfuzz.runner import Runner


class Sessions:
    """One runner a configuration. stop() ends all workers; it also runs when the interpreter ends."""

    def __init__(self) -> None:
        self._runners: dict[FleetConfig, Runner] = {}
        self._logs: Path | None = None
        atexit.register(self.stop)

    def runner(self, config: FleetConfig, dispatcher: Dispatcher | None = None) -> Runner:
        """The runner of a configuration; starts its fleet when there is none yet."""
        if config not in self._runners:
            self._runners[config] = Runner(self._start(config), dispatcher)
        return self._runners[config]

    def _start(self, config: FleetConfig) -> Fleet:
        if self._logs is None:
            self._logs = Path(tempfile.mkdtemp(prefix="tierfuzz-logs-"))
        fleet = Fleet(config, self._logs / f"fleet-{len(self._runners)}")
        fleet.start()
        return fleet

    def stop(self, keep_logs: bool = False) -> None:
        """End every worker; logs go too unless they are wanted."""
        while self._runners:
            _, runner = self._runners.popitem()
            runner.fleet.stop(keep_logs)
        if self._logs is not None and not keep_logs:
            shutil.rmtree(self._logs, ignore_errors=True)
            self._logs = None


SESSIONS = Sessions()

"""Fleets that live longer than a case: started when first needed, shared, ended together."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path
from unittest import SkipTest

import msgspec

from tierfuzz.errors import EnvironmentFailure
from tierfuzz.fleet import Fleet
from tierfuzz.program import FleetConfig
from tierfuzz.runevents import Dispatcher
from tierfuzz.runner import Runner


class Sessions:
    """One runner a configuration. stop() ends all workers; it also runs when the interpreter ends."""

    def __init__(self) -> None:
        self._runners: dict[FleetConfig, Runner] = {}
        self._logs: Path | None = None
        self._refusal, self._required = "", False
        self._chosen = FleetConfig()
        atexit.register(self.stop)

    def refuse(self, reason: str, required: bool) -> None:
        """No fleet can run here: machines skip with this reason, or fail where one is required."""
        self._refusal, self._required = reason, required

    def choose(self, fleet: FleetConfig) -> None:
        """Run what asks for a simulated worker on this engine and version, or on these attached workers."""
        self._chosen = fleet

    def chosen(self, config: FleetConfig) -> FleetConfig:
        """The configuration to run instead; SkipTest where attached workers have another policy."""
        own = self._chosen
        if config.engine != "sim" or config.plants or (own.engine == "sim" and not own.attached):
            return config
        if not own.attached:
            return msgspec.structs.replace(config, engine=own.engine, engine_version=own.engine_version)
        if own.policy != config.policy:
            raise SkipTest(f"the attached workers have the policy {own.policy}, not {config.policy}")
        return own

    def check(self) -> None:
        """Raise when fleets are refused."""
        if self._refusal:
            raise EnvironmentFailure(self._refusal) if self._required else SkipTest(self._refusal)

    def runner(self, config: FleetConfig, dispatcher: Dispatcher | None = None) -> Runner:
        """The runner of a configuration; starts its fleet when there is none yet."""
        self.check()
        config = self.chosen(config)
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

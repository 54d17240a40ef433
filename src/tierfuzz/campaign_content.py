"""A campaign that compares contents: measure the engine first, then conversations, then load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tierfuzz.contents.asking import Asker
from tierfuzz.contents.measure import measure
from tierfuzz.contents.talks import KINDS, converse
from tierfuzz.contents.traffic import Load, probe_under
from tierfuzz.errors import ExitCode
from tierfuzz.fleet import Fleet
from tierfuzz.oracles.contents import Comparison, Figures, Finding, findings_of
from tierfuzz.program import FleetConfig

QUIET_SHARE = 0.2  # of the time under load, without decoders
Say = Callable[[str], None]


@dataclass(frozen=True)
class ContentConfig:
    """`talk_s` and `load_s`: seconds for conversations and for load, after the engine was measured."""

    fleet: FleetConfig
    talk_s: float = 60.0
    load_s: float = 60.0
    load: Load = field(default_factory=Load)
    seed: int = 0
    log_dir: Path = Path("tierfuzz-logs")


@dataclass
class ContentResult:
    """What was measured, compared and found."""

    fleet: FleetConfig
    figures: Figures | None = None
    seen: list[Comparison] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    requests: int = 0
    seconds: float = 0.0
    load: str = ""
    interrupted: bool = False

    @property
    def exit_code(self) -> ExitCode:
        """Violation, vacuous (nothing came from host), or held."""
        if any(finding.outcome == "differs" for finding in self.findings):
            return ExitCode.VIOLATION
        if self.interrupted:
            return ExitCode.INTERRUPTED
        served = any(one.served in ("host", "storage") for one in self.seen)
        return ExitCode.HELD if served else ExitCode.VACUOUS


def run_content(config: ContentConfig, say: Say) -> ContentResult:
    """One worker, start to end; Ctrl-C ends it with what there is."""
    result = ContentResult(config.fleet, load=config.load.described())
    try:
        with Fleet(config.fleet, config.log_dir) as fleet:
            _compare(Asker(fleet, fleet.workers[0], Random(config.seed)), config, result, say)
    except KeyboardInterrupt:
        result.interrupted = True
    if result.figures is not None:
        result.findings = findings_of(result.figures, result.seen)
    return result


def _compare(asker: Asker, config: ContentConfig, result: ContentResult, say: Say) -> None:
    begun = asker.fleet.clock.monotonic()
    try:
        asker.flush()
        result.figures, honest = measure(asker)
        result.seen += honest
        say(result.figures.described())
        _talk(asker, config, result, say)
        _load(asker, config, result, say)
    finally:
        result.requests, result.seconds = asker.requests, asker.fleet.clock.monotonic() - begun


def _talk(asker: Asker, config: ContentConfig, result: ContentResult, say: Say) -> None:
    end = asker.fleet.clock.monotonic() + config.talk_s
    while asker.fleet.clock.monotonic() < end:
        result.seen += converse(asker, KINDS, from_device=asker.random.random() < 0.5)
    say(f"{len(result.seen)} answers of conversations compared")


def _load(asker: Asker, config: ContentConfig, result: ContentResult, say: Say) -> None:
    if config.load_s <= 0:
        return
    quiet = QUIET_SHARE * config.load_s
    load = config.load
    result.seen += probe_under(asker, Load(0, load.probers, load.outputs, load.pause_s, quiet))
    busy = Load(load.decoders, load.probers, load.outputs, load.pause_s, config.load_s - quiet)
    result.seen += probe_under(asker, busy)
    say(f"{len(result.seen)} answers in all compared")

"""pytest plugin: Hypothesis profiles, options for the fleet, a fixture with a running fleet.

Nothing heavy is imported until a test or an option needs it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tierfuzz.fleet import Fleet
    from tierfuzz.program import FleetConfig
    from tierfuzz.violations import Violation

GPU_PROFILE = "gpu"
PROGRAMS_FOLDER = "tierfuzz-out"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of tierfuzz."""
    group = parser.getgroup("tierfuzz")
    group.addoption("--tier-engine", default="", help="engine under test (default: sim; gpu profile: sglang)")
    group.addoption("--tier-engine-version", default="", help="its version (default: the engine's own)")
    group.addoption("--tier-policy", default="write_through", help="write policy of the tier_fleet fixture")
    group.addoption("--tier-workers", type=int, default=2, help="workers of the tier_fleet fixture")
    group.addoption("--tier-worker", action="append", default=[], help="URL of a worker that runs already")
    group.addoption(
        "--tier-allow-destructive", action="store_true", help="attached workers may be emptied and changed"
    )
    group.addoption(
        "--tier-require-engine", action="store_true", help="fail, not skip, where the engine cannot run"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the profiles before Hypothesis loads the one that was asked for; choose the engine."""
    profile = config.getoption("--hypothesis-profile", default=None)
    if profile:
        from tierfuzz.profiles import register

        register(config.rootpath)
    engine = config.getoption("--tier-engine") or ("sglang" if profile == GPU_PROFILE else "sim")
    if engine != "sim" or config.getoption("--tier-worker"):
        _choose(config, engine)


def _choose(config: pytest.Config, engine: str) -> None:
    """Have machines run on a real engine, or on workers that run already; skip where that cannot be."""
    from tierfuzz.errors import TierfuzzError
    from tierfuzz.session import SESSIONS

    try:
        fleet = _chosen_fleet(config, engine)
        from tierfuzz.engines.registry import driver_of

        reason = driver_of(fleet).unavailable(fleet)
    except TierfuzzError as error:
        raise pytest.UsageError(f"--tier-engine, --tier-worker: {error}") from error
    SESSIONS.choose(fleet)
    if reason:
        SESSIONS.refuse(reason, config.getoption("--tier-require-engine"))


def _chosen_fleet(config: pytest.Config, engine: str) -> FleetConfig:
    from tierfuzz.program import FleetConfig

    if urls := config.getoption("--tier-worker"):
        from tierfuzz.cli.attach import attached_fleet

        return attached_fleet(urls, (), (), engine, config.getoption("--tier-allow-destructive"))
    return FleetConfig(engine=engine, engine_version=config.getoption("--tier-engine-version"))


@pytest.fixture(scope="session")
def tier_fleet_config(request: pytest.FixtureRequest) -> FleetConfig:
    """The fleet that the options ask for; override it for another one."""
    from tierfuzz.program import WRITE_POLICIES, FleetConfig
    from tierfuzz.session import SESSIONS

    policy = request.config.getoption("--tier-policy")
    if policy not in WRITE_POLICIES:
        raise pytest.UsageError(f"--tier-policy {policy!r}: expected one of {', '.join(WRITE_POLICIES)}")
    workers = request.config.getoption("--tier-workers")
    return SESSIONS.chosen(FleetConfig(policy=policy, workers=workers, host_ratio=3.0))


@pytest.fixture(scope="session")
def tier_fleet(tier_fleet_config: FleetConfig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A running fleet of the whole session; its workers end with it."""
    from tierfuzz.fleet import Fleet
    from tierfuzz.session import SESSIONS

    SESSIONS.check()
    folder: Path = tmp_path_factory.mktemp("tierfuzz")
    with Fleet(tier_fleet_config, folder) as fleet:
        yield fleet


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write the program of a violation down, and say how to run it again."""
    report = yield
    violations = sys.modules.get("tierfuzz.violations")
    error = call.excinfo.value if call.excinfo is not None else None
    if violations is not None and isinstance(error, violations.Violation):
        report.sections.append(("tierfuzz", _hand_over(item, error)))
    return report


def _hand_over(item: pytest.Item, violation: Violation) -> str:
    """Write the program and its folder; what the report says of them."""
    from tierfuzz.program import dump_program
    from tierfuzz.report.handover.short import short_text
    from tierfuzz.report.handover.writer import write_handover

    name = re.sub(r"[^\w.-]+", "-", item.nodeid).strip("-")
    folder = item.config.rootpath / PROGRAMS_FOLDER / name
    found = (violation.program, violation.verdicts, violation.evidence)
    write_handover(folder, *found)
    path = folder.with_name(f"{name}.json")
    path.write_bytes(dump_program(violation.program))
    if violation.original is not None:
        folder.with_name(f"{name}-full.json").write_bytes(dump_program(violation.original))
    return f"{short_text(*found, folder)}\nagain:   tierfuzz replay {path}"


def pytest_sessionfinish() -> None:
    """End the workers that machines have started."""
    session = sys.modules.get("tierfuzz.session")
    if session is not None:
        session.SESSIONS.stop()

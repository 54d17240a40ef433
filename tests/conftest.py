"""What every test may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tierfuzz.fleet import Fleet
from tierfuzz.program import FleetConfig

pytest_plugins = ["pytester"]

RECORDINGS = Path(__file__).parent / "recordings"


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder with recordings of real engines."""
    return RECORDINGS


@pytest.fixture(scope="session")
def sim_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Two simulated workers under write_through, shared by tests that empty them first."""
    with Fleet(FleetConfig(host_ratio=3.0), tmp_path_factory.mktemp("sim-fleet")) as fleet:
        yield fleet

"""Fleets: started, checked, restarted, ended without leaving anything."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec
import psutil
import pytest

from tierfuzz.engines.base import Launch
from tierfuzz.engines.sim import SimDriver
from tierfuzz.errors import EnvironmentFailure, UsageError, WorkerDied
from tierfuzz.fleet import Fleet
from tierfuzz.program import FleetConfig
from tierfuzz.worker.http import Call


def port_of(fleet: Fleet, worker: int) -> int:
    """HTTP port of a worker."""
    return int(fleet.workers[worker].launch.base_url.rsplit(":", 1)[1])


def listening(port: int) -> bool:
    """Somebody accepts connections there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_nothing_stays_behind(tmp_path: Path) -> None:
    with Fleet(FleetConfig(), tmp_path) as fleet:
        pids = [worker.process.pid for worker in fleet.workers]
        ports = [port_of(fleet, index) for index in range(2)]
        assert all(listening(port) for port in ports)
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert not any(listening(port) for port in ports)
    assert not list(tmp_path.rglob("*.log"))


def test_logs_are_kept_when_something_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Fleet(FleetConfig(workers=1), tmp_path):
        raise ZeroDivisionError
    assert len(list(tmp_path.rglob("*.log"))) == 1


def test_a_worker_that_cannot_start_is_reported_with_its_log(tmp_path: Path) -> None:
    config = FleetConfig(workers=1, plants=("no-such-fault",))
    with pytest.raises(WorkerDied, match="no-such-fault"), Fleet(config, tmp_path):
        raise AssertionError("unreachable")


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown engine 'warp'; expected one of: sim"):
        Fleet(FleetConfig(engine="warp"), Path("unused"))


def test_a_restarted_worker_is_empty_and_its_events_count_from_zero(tmp_path: Path) -> None:
    with Fleet(FleetConfig(workers=1), tmp_path) as fleet:
        worker = fleet.workers[0]
        call = Call("r1", tuple(range(1, 100)), 1)
        worker.client.generate(call).usable()
        assert fleet.settle(worker).last_seq > 0
        port = port_of(fleet, 0)
        fleet.restart(worker)
        assert port_of(fleet, 0) == port
        assert fleet.settle(worker).last_seq == 0
        assert worker.client.generate(Call("r2", call.tokens, 1)).usable().cached_tokens == 0


class Undersized(SimDriver):
    """Starts workers of another size than was asked for."""

    def launch(self, config: FleetConfig, worker: int, ports: list[int]) -> Launch:
        """Half the device pool."""
        return super().launch(
            msgspec.structs.replace(config, device_tokens=config.device_tokens // 2), worker, ports
        )


def test_a_worker_of_another_size_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(EnvironmentFailure, match="asked were"),
        Fleet(FleetConfig(workers=1), tmp_path, driver=Undersized()),
    ):
        raise AssertionError("unreachable")

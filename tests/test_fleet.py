"""Fleets: started, checked, restarted, ended without leaving anything."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import msgspec
import psutil
import pytest

from tierfuzz.engines.base import Launch
from tierfuzz.engines.sim import SimDriver
from tierfuzz.errors import EnvironmentFailure, UsageError, WorkerDied, WorkerNotReady
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
    with pytest.raises(UsageError, match="unknown engine 'warp'; expected one of: sglang, sglang-cpu, sim"):
        Fleet(FleetConfig(engine="warp"), Path("unused"))


def test_a_restarted_worker_is_empty_and_its_events_count_from_zero(tmp_path: Path) -> None:
    with Fleet(FleetConfig(workers=1), tmp_path) as fleet:
        worker = fleet.workers[0]
        calls = [Call(f"r{number}", tuple(range(number, number + 99)), 1) for number in range(20)]
        for call in calls:
            worker.client.generate(call).usable()
        before = fleet.settle(worker).last_seq
        port = port_of(fleet, 0)
        fleet.restart(worker)
        assert port_of(fleet, 0) == port
        assert 0 <= fleet.settle(worker).last_seq < before
        assert worker.client.generate(Call("again", calls[0].tokens, 1)).usable().cached_tokens == 0


def test_events_are_heard_live_before_anything_is_asked_of_a_worker(tmp_path: Path) -> None:
    with Fleet(FleetConfig(), tmp_path) as fleet:
        for worker in fleet.workers:
            assert worker.subscriber.counts["messages"] >= 1
            assert not worker.subscriber.take_findings()


class Deaf(SimDriver):
    """Listens for a topic that the worker does not publish: replays answer, nothing arrives live."""

    def launch(self, config: FleetConfig, worker: int, ports: list[int]) -> Launch:
        """Another topic."""
        return replace(super().launch(config, worker, ports), topic="elsewhere")


def test_a_worker_whose_events_do_not_arrive_live_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tierfuzz.fleet_check.EVENTS_BOUND_S", 0.2)
    started = Fleet(FleetConfig(workers=1), tmp_path, driver=Deaf())
    with pytest.raises(WorkerNotReady, match="no events from tcp"):
        started.start()
    assert started.workers == []


def test_a_worker_that_publishes_nothing_new_is_left_to_the_oracles(tmp_path: Path) -> None:
    fault = tmp_path / "mine.py"
    fault.write_text(
        "from tierfuzz.model.faults import Fault\n"
        "class Silent(Fault):\n"
        "    def publish(self, engine, inner):\n"
        "        engine.cache.outbox.take()\n"
    )
    with Fleet(FleetConfig(workers=1, plants=(f"{fault}:Silent",)), tmp_path) as fleet:
        assert fleet.workers[0].client.generate(Call("r", tuple(range(1, 50)), 1)).usable().prompt_tokens


@pytest.mark.parametrize("moment", ["_launch", "_check"])
def test_ctrl_c_during_a_start_leaves_nothing(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet(FleetConfig(), tmp_path)
    real = getattr(fleet, moment)
    seen: list[int] = []

    def interrupted(what: object) -> None:
        real(what)
        seen.extend(worker.process.pid for worker in fleet.workers)
        raise KeyboardInterrupt

    monkeypatch.setattr(fleet, moment, interrupted)
    with pytest.raises(KeyboardInterrupt):
        fleet.start()
    assert seen
    assert not any(psutil.pid_exists(pid) for pid in seen)
    assert fleet.workers == []


def test_all_workers_are_ended_even_if_one_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Fleet(FleetConfig(), tmp_path) as fleet:
        pids = [worker.process.pid for worker in fleet.workers]

        def stuck(_: float) -> None:
            raise EnvironmentFailure("stuck")

        last = fleet.workers[-1]
        monkeypatch.setattr(last.process, "stop", stuck)
        with pytest.raises(EnvironmentFailure, match="stuck"):
            fleet.stop()
        assert not psutil.pid_exists(pids[0])
        last.process.kill()
    assert not any(psutil.pid_exists(pid) for pid in pids)


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

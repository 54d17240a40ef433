"""The runner against live simulated workers: what it proves, reports, recovers from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierfuzz.engines.sim import SimDriver
from tierfuzz.errors import UsageError
from tierfuzz.fleet import Fleet
from tierfuzz.program import (
    WRITE_POLICIES,
    Burst,
    Detach,
    Fill,
    FleetConfig,
    Flush,
    Generate,
    Hold,
    Idle,
    Program,
    Release,
    Restart,
    WritePolicy,
)
from tierfuzz.prompts import Piece
from tierfuzz.resolve import FILL_BOUND
from tierfuzz.runevents import (
    BatchesSeen,
    Dispatcher,
    Emptied,
    OperationDone,
    OperationStarted,
    RequestSent,
    RestSought,
    RunEvent,
)
from tierfuzz.runner import Runner
from tierfuzz.verdict import Outcome

A = (Piece("A", 0, 165),)


class Recorder:
    """A listener that keeps everything."""

    def __init__(self) -> None:
        self.events: list[RunEvent] = []

    def on_event(self, event: RunEvent) -> None:
        """Keep it."""
        self.events.append(event)


def host_probe(role: str = "probe") -> tuple[Generate | Fill, ...]:
    """Prime, push off the device, and come back: twice inserted, so that every policy has a host copy."""
    return (
        Generate("a", 0, A, 2),
        Generate("a2", 0, A, 2, "repeat"),
        Fill("f", 0, "F", target="a"),
        Generate("p", 0, A, 2, role),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("policy", WRITE_POLICIES)
def test_a_host_only_prefix_is_forecast_and_served_from_host(policy: WritePolicy, tmp_path: Path) -> None:
    with Fleet(FleetConfig(policy=policy, host_ratio=3.0), tmp_path) as fleet:
        recorder = Recorder()
        runner = Runner(fleet, Dispatcher([recorder]))
        verdicts = runner.run(Program(fleet.config, host_probe()))
        assert verdicts == []
        assert runner.reach["probe-host-only"] == 1
        assert runner.held["host-miss"] == 1
        done = [event for event in recorder.events if isinstance(event, OperationDone)]
        (probe,) = done[-1].observations
        assert probe.split is not None
        assert (probe.split.device, probe.split.host) == (0, 160)


def test_operations_are_announced_before_they_are_sent(sim_fleet: Fleet) -> None:
    recorder = Recorder()
    Runner(sim_fleet, Dispatcher([recorder])).run(Program(sim_fleet.config, (Generate("a", 0, A, 1),)))
    kinds = [type(event) for event in recorder.events]
    assert kinds[:3] == [Emptied, OperationStarted, RequestSent]
    assert kinds.count(OperationStarted) == kinds.count(RequestSent) == kinds.count(OperationDone) == 1
    assert kinds.index(RequestSent) < kinds.index(BatchesSeen) < kinds.index(OperationDone)


def test_the_tape_has_the_newest_case_with_what_was_known_and_seen(sim_fleet: Fleet) -> None:
    recorder = Recorder()
    runner = Runner(sim_fleet, Dispatcher([recorder]))
    for _ in range(2):
        recorder.events.clear()
        runner.run(Program(sim_fleet.config, host_probe()))
        assert runner.tape == recorder.events[1:], "but for the reset before it"
    sent = [event for event in runner.tape if isinstance(event, RequestSent)]
    probe = sent[-1]
    assert (probe.request.id, len(probe.tokens), probe.forecast.host_only) == ("p", 165, 10)
    assert probe.view is not None
    assert (probe.view.total.low, probe.view.device.high) == (10, 0)
    seen = [batch for event in runner.tape if isinstance(event, BatchesSeen) for batch in event.batches]
    assert [batch.seq for batch in seen] == list(range(seen[0].seq, seen[0].seq + len(seen)))
    rests = [event for event in runner.tape if isinstance(event, RestSought)]
    assert rests
    assert all(rest.at_rest and not rest.reason for rest in rests)


class Dear(SimDriver):
    """A simulated worker whose starts are dear."""

    dear_restarts = True


@pytest.mark.parametrize(("driver", "kept"), [(Dear(), True), (SimDriver(), False)])
def test_storage_is_attached_again_where_a_start_is_dear(
    driver: SimDriver, kept: bool, tmp_path: Path
) -> None:
    config = FleetConfig(workers=1, storage_threshold=32)
    with Fleet(config, tmp_path, driver=driver) as fleet:
        runner, pid = Runner(fleet), fleet.workers[0].process.pid
        runner.run(Program(config, (Detach("d", 0),)))
        assert fleet.workers[0].reconfigured
        runner.reset()
        assert not fleet.workers[0].reconfigured
        assert (fleet.workers[0].process.pid == pid) is kept
        assert fleet.workers[0].client.server_info()["hicache_storage_backend"] == "file"


def test_a_case_starts_on_empty_workers(sim_fleet: Fleet) -> None:
    runner = Runner(sim_fleet)
    program = Program(sim_fleet.config, (Generate("a", 0, A, 2),))
    for _ in range(2):
        assert runner.run(program) == []
        assert runner.reach["device-hit"] == 0


def test_every_operation_of_a_program_can_be_carried_out(sim_fleet: Fleet) -> None:
    operations = (
        *host_probe(),
        Burst("b", (Generate("b0", 0, A, 5), Generate("b1", 0, (Piece("C", 0, 90),), 0, abort_after_s=0.0))),
        Generate("g", 0, (*A, Piece("@a", 0, 2), Piece("T", 0, 5)), 1, "grow"),
        Generate("n", 1, A, 2, "namespaced", "tenant"),
        Hold("h", 1),
        Generate("m", 1, (Piece("M", 0, 60),), 2),
        Release("r", 1),
        Idle("i", 1),
        Flush("fl", 0),
        Restart("x", 1),
        Generate("z", 1, A, 2, "repeat"),
    )
    runner = Runner(sim_fleet)
    assert runner.run(Program(sim_fleet.config, operations)) == []
    for state in ("overlap", "hold", "flush", "restart", "namespace", "load-back", "at-rest"):
        assert runner.reach[state], state


def test_held_copies_are_released_before_requests_would_wait_for_ever(sim_fleet: Fleet) -> None:
    pressure = tuple(Generate(f"p{i}", 0, (Piece(f"P{i}", 0, 160),), 1) for i in range(12))
    runner = Runner(sim_fleet)
    assert runner.run(Program(sim_fleet.config, (Hold("h", 0), *pressure))) == []
    assert runner.reach["held-copies"] >= 1


def test_copies_that_have_not_landed_are_not_held_as_well(tmp_path: Path) -> None:
    config = FleetConfig(workers=1, ack_delay_ms=200.0)
    with Fleet(config, tmp_path) as fleet:
        runner = Runner(fleet)
        runner.reset()
        runner.apply(Generate("a", 0, A, 2))
        runner.apply(Hold("h", 0))
        metrics = fleet.workers[0].client.metrics()
        evictable, free = metrics["sglang:kv_evictable_tokens"], metrics["sglang:kv_available_tokens"]
        assert free + evictable == config.device_tokens, "nothing is pinned"
        assert runner.finish() == []


def test_rest_is_not_claimed_while_copies_are_held(sim_fleet: Fleet) -> None:
    runner = Runner(sim_fleet)
    runner.reset()
    runner.apply(Hold("h", 0))
    runner.apply(Generate("a", 0, A, 2))
    before = runner.reach["at-rest"]
    runner.apply(Generate("p", 0, A, 2, "probe"))
    assert runner.reach["at-rest"] == before
    assert runner.finish() == []


def test_a_worker_that_dies_is_a_violation_and_the_run_goes_on(tmp_path: Path) -> None:
    config = FleetConfig(workers=1, host_ratio=3.0, plants=("dies-on-load-back",))
    with Fleet(config, tmp_path) as fleet:
        runner = Runner(fleet)
        verdicts = runner.run(Program(config, (*host_probe(), Generate("after", 0, A, 1))))
        assert {verdict.oracle for verdict in verdicts} == {"crash"}
        assert "host value is None" in verdicts[0].message
        assert fleet.workers[0].process.alive()


def test_a_request_for_a_worker_that_is_not_there_is_refused(sim_fleet: Fleet) -> None:
    runner = Runner(sim_fleet)
    runner.reset()
    with pytest.raises(UsageError, match="workers 0 to 1"):
        runner.apply(Generate("a", 7, A))


def test_idle_does_not_wait_for_copies_that_are_held(
    sim_fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = Runner(sim_fleet)
    runner.reset()
    runner.apply(Hold("h", 0))
    runner.apply(Generate("a", 0, A, 2))
    settled: list[int] = []
    monkeypatch.setattr(sim_fleet, "settle", lambda worker: settled.append(worker.index))
    runner.apply(Idle("i", 0))
    monkeypatch.undo()
    assert settled == []
    assert runner.finish() == []


def test_a_filler_that_does_not_reach_its_effect_is_unknown_never_held(
    sim_fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = Runner(sim_fleet)
    runner.reset()
    runner.apply(Generate("a", 0, A, 2))
    monkeypatch.setattr(sim_fleet.workers[0].judge, "claims_device", lambda *_: True)
    before = runner.requests
    runner.apply(Fill("f", 0, "F", target="a"))
    bound = FILL_BOUND * sim_fleet.config.device_tokens / 128
    assert runner.requests - before == bound, "the bound is reached, not passed"
    (verdict,) = runner.finish()
    assert (verdict.oracle, verdict.outcome, verdict.operation) == ("host-miss", Outcome.UNKNOWN, "f")


@pytest.mark.parametrize("operation", [Flush("x", 0), Idle("x", 0), Restart("x", 0), Hold("x", 0)])
def test_a_worker_that_died_between_requests_is_a_crash_wherever_it_shows(
    operation: Flush | Idle | Restart | Hold, tmp_path: Path
) -> None:
    with Fleet(FleetConfig(workers=1, host_ratio=3.0), tmp_path) as fleet:
        runner = Runner(fleet)
        runner.reset()
        runner.apply(Generate("a", 0, A, 2))
        fleet.workers[0].process.kill()
        runner.apply(operation)
        runner.apply(Generate("b", 0, A, 1))
        assert {verdict.oracle for verdict in runner.finish()} == {"crash"}
        assert runner.run(Program(fleet.config, host_probe())) == []


def test_the_rest_of_a_filler_is_not_sent_to_a_worker_that_died(tmp_path: Path) -> None:
    with Fleet(FleetConfig(workers=1, host_ratio=3.0), tmp_path) as fleet:
        runner = Runner(fleet)
        runner.reset()
        runner.apply(Idle("i", 0))
        fleet.workers[0].process.kill()
        before = runner.requests
        runner.apply(Fill("f", 0, "F"))
        assert runner.requests - before == 1
        assert [verdict.oracle for verdict in runner.finish()] == ["crash"]


def test_a_worker_that_died_holding_copies_is_a_crash_at_the_end_of_the_case(tmp_path: Path) -> None:
    with Fleet(FleetConfig(workers=1, host_ratio=3.0), tmp_path) as fleet:
        runner = Runner(fleet)
        runner.reset()
        runner.apply(Hold("h", 0))
        fleet.workers[0].process.kill()
        assert {verdict.oracle for verdict in runner.finish()} == {"crash"}
        assert runner.run(Program(fleet.config, host_probe())) == []

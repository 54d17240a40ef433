"""The public machine: silent on healthy workers, loud on a planted fault, stable in what it raises."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tierfuzz.machine import TierMachine
from tierfuzz.program import Fill, FleetConfig, Generate, Operation
from tierfuzz.session import SESSIONS
from tierfuzz.verdict import Verdict
from tierfuzz.violations import TYPES, Violation

FEW = settings(
    max_examples=4,
    stateful_step_count=15,
    deadline=None,
    database=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(autouse=True)
def no_workers_left() -> Iterator[None]:
    """Machines share fleets; every test ends those that it started."""
    yield
    SESSIONS.stop()


def test_a_healthy_fleet_holds() -> None:
    class Healthy(TierMachine):
        policy = "write_back"

    run_state_machine_as_test(Healthy, settings=FEW)


def test_a_planted_fault_is_raised_as_its_oracle_with_the_program() -> None:
    class Faulty(TierMachine):
        fleet = FleetConfig(host_ratio=3.0, plants=("removal-twice",))
        shrink = None

    with pytest.raises(Violation) as caught:
        run_state_machine_as_test(Faulty, settings=FEW)
    assert type(caught.value) is TYPES["unmatched-removal"]
    assert caught.value.program.operations
    first = caught.value.verdicts[0]
    assert first.seen == first.tries == 3, "the fault is deterministic, so every repetition shows it"


def test_a_failing_case_is_raised_small_and_shrunk_once() -> None:
    class Shrinks(TierMachine):
        fleet = FleetConfig(host_ratio=3.0, plants=("removal-twice",))

    with pytest.raises(Violation) as caught:
        run_state_machine_as_test(Shrinks, settings=settings(FEW, max_examples=1))
    error = caught.value
    first = error.verdicts[0]
    assert type(error) is TYPES["unmatched-removal"]
    assert error.original is not None
    assert len(error.program.operations) <= 2 < len(error.original.operations)
    assert error.program.fleet.workers == 1
    assert first.oracle == "unmatched-removal"
    assert first.seen == first.tries == 2, "accepted once, checked once; the report is not another search"
    assert "without any one operation it passes" in str(error)
    assert error.evidence.events


def test_every_oracle_has_an_exception_of_its_own() -> None:
    assert len({exception.__name__ for exception in TYPES.values()}) == len(TYPES)
    assert all(issubclass(exception, Violation) for exception in TYPES.values())


def test_the_simplest_case_is_prime_push_off_and_probe() -> None:
    programs: list[tuple[Operation, ...]] = []

    class Simplest(TierMachine):
        policy = "write_back"

        def conclude(self, verdicts: list[Verdict]) -> None:
            assert not verdicts
            assert self.runner.reach["probe-host-only"]
            programs.append(self.program.operations)

    run_state_machine_as_test(Simplest, settings=settings(FEW, max_examples=1, stateful_step_count=3))
    kinds = [type(operation) for operation in programs[0]]
    assert kinds[:3] == [Generate, Fill, Generate]

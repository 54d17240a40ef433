"""tierfuzz replay on workers that run already."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tierfuzz.cli.replay import replay
from tierfuzz.engines.attached import KEY_VARIABLE
from tierfuzz.engines.sim import ADMIN_KEY
from tierfuzz.fleet import Fleet
from tierfuzz.program import Fill, FleetConfig, Generate, Program, dump_program
from tierfuzz.prompts import Piece

A = (Piece("A", 0, 165),)
PROGRAM = Program(
    FleetConfig(workers=1, host_ratio=3.0),
    (Generate("op0", 0, A, 2), Fill("op1", 0, "F", target="op0"), Generate("op2", 0, A, 2, "probe")),
)
SEVENTH = """
from tierfuzz.model.faults import Fault

class Seventh(Fault):
    served = 0

    def account(self, engine, inner, active, host_tokens, loaded):
        total, split = inner(active, host_tokens, loaded)
        self.served += 1
        return total + 16 * (self.served == 7), split
"""


def replayed(fleet: Fleet, folder: Path, *options: str) -> Result:
    """The program twice on the first worker of a running fleet."""
    path = folder / "program.json"
    path.write_bytes(dump_program(PROGRAM))
    url = fleet.workers[0].launch.base_url
    return CliRunner().invoke(replay, [str(path), "--times", "2", "--worker", url, *options])


@pytest.mark.parametrize("options", [(), ("--allow-destructive",)])
def test_a_healthy_worker_is_fixed_twice(
    options: tuple[str, ...], sim_fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, ADMIN_KEY)
    done = replayed(sim_fleet, tmp_path, *options)
    assert (done.exit_code, done.output) == (0, "FIXED: 0 of 2 runs violated an oracle\n")
    assert sim_fleet.workers[0].process.alive()


def test_a_faulty_worker_has_failed_and_is_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, ADMIN_KEY)
    faulty = FleetConfig(workers=1, host_ratio=3.0, plants=("host-copy-forgotten",))
    with Fleet(faulty, tmp_path / "logs") as fleet:
        done = replayed(fleet, tmp_path, "--out", str(tmp_path / "out"))
    assert done.exit_code == 1, done.output
    assert "FAILED 2 of 2: host-miss" in done.output
    assert fleet_url(tmp_path / "out" / "repro.py") in (tmp_path / "out" / "launch.txt").read_text()
    assert ADMIN_KEY not in (tmp_path / "out" / "repro.py").read_text()


@pytest.mark.parametrize(("warm", "said"), [(True, "FLAKY 1 of 7"), (False, "FIXED: 0 of 7 runs")])
def test_what_depends_on_earlier_runs_shows_on_warm_workers(warm: bool, said: str, tmp_path: Path) -> None:
    (tmp_path / "seventh.py").write_text(SEVENTH)
    fleet = FleetConfig(workers=1, host_ratio=3.0, plants=(f"{tmp_path / 'seventh.py'}:Seventh",))
    path = tmp_path / "program.json"
    path.write_bytes(dump_program(Program(fleet, PROGRAM.operations[:1])))
    line = [str(path), "--times", "7", *(["--warm"] if warm else [])]
    done = CliRunner().invoke(replay, line)
    assert said in done.output


def fleet_url(script: Path) -> str:
    """Where a script looks for its worker."""
    (line,) = [line for line in script.read_text().splitlines() if line.startswith("    'workers': ")]
    return line.split("'")[3]

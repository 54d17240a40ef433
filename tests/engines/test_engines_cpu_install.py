"""Installing the CPU engine: steps once each, going on after an interruption, removal; pip is not run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tierfuzz.engines.sglang_cpu import pins
from tierfuzz.engines.sglang_cpu.environment import MODULE, CpuEnvironment, State
from tierfuzz.engines.sglang_cpu.install import install, run_command
from tierfuzz.errors import EnvironmentFailure, UsageError

VERSION = "0.5.17"


class FakePip:
    """Notes commands; makes the folders that an environment has; fails at the `fails`-th command."""

    def __init__(self, environment: CpuEnvironment, fails: int = 0) -> None:
        self.commands: list[list[str]] = []
        self._venv = environment.folder / "venv"
        self._fails = fails

    def __call__(self, command: Sequence[str]) -> None:
        self.commands.append(list(command))
        if len(self.commands) == self._fails:
            raise EnvironmentFailure("no network")
        if "venv" in command:
            (self._venv / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
            (self._venv / "bin").mkdir()
            (self._venv / "bin" / "python").write_text("#!/bin/sh\nexit 0\n")
            (self._venv / "bin" / "python").chmod(0o755)

    @property
    def packages(self) -> list[str]:
        """Everything that was to be installed."""
        return [word for command in self.commands for word in command if "==" in word]


def installed(root: Path) -> tuple[CpuEnvironment, FakePip, list[str]]:
    """An environment that was installed, and what was said meanwhile."""
    environment, said = CpuEnvironment(VERSION, root), list[str]()
    pip = FakePip(environment)
    install(environment, said.append, pip)
    return environment, pip, said


def test_all_packages_are_pinned_and_installed(tmp_path: Path) -> None:
    environment, pip, said = installed(tmp_path)
    assert environment.installed
    assert pip.packages == [pins.TORCH, *pins.packages(), f"sglang=={VERSION}"]
    assert said[-1].startswith(f"[{len(said)}/{len(said)}]")


def test_an_interrupted_installation_goes_on_where_it_stopped(tmp_path: Path) -> None:
    environment = CpuEnvironment(VERSION, tmp_path)
    first = FakePip(environment, fails=5)
    with pytest.raises(EnvironmentFailure, match="no network"):
        install(environment, lambda _: None, first)
    assert not environment.installed
    second = FakePip(environment)
    install(environment, lambda _: None, second)
    assert environment.installed
    assert second.commands[0] == first.commands[4]
    assert len(second.commands) + 4 == len(installed(tmp_path / "other")[1].commands)


def test_another_list_of_packages_starts_again(tmp_path: Path) -> None:
    environment, _, _ = installed(tmp_path)
    environment.write_state(State(VERSION, "another checksum", ["venv"], complete=True))
    assert not environment.installed
    pip = FakePip(environment)
    install(environment, lambda _: None, pip)
    assert "venv" in pip.commands[0]


def test_a_changed_list_is_refused(tmp_path: Path) -> None:
    changed = tmp_path / "packages.txt"
    changed.write_bytes(pins.LIST.read_bytes() + b"leftpad==1\n")
    with pytest.raises(EnvironmentFailure, match="checksum"):
        pins.packages(changed)
    assert all("==" in line for line in pins.packages())


def test_versions_that_cannot_be_installed_are_refused() -> None:
    with pytest.raises(UsageError, match=r"expected one of 0\.5\.17, 0\.5\.23"):
        CpuEnvironment("0.4")


def test_an_engine_that_is_not_installed_says_how_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure, match="tierfuzz engine install sglang-cpu --version"):
        CpuEnvironment(VERSION, tmp_path).require()


def test_the_plugin_is_an_entry_point_and_follows_tierfuzz(tmp_path: Path) -> None:
    environment, _, _ = installed(tmp_path)
    site = environment.site_packages
    entry = (site / f"{MODULE}-1.dist-info" / "entry_points.txt").read_text()
    assert entry == f"[sglang.srt.plugins]\ntierfuzz_cpu = {MODULE}:activate\n"
    (site / f"{MODULE}.py").write_text("old")
    assert environment.require() == environment.python
    assert "def activate" in (site / f"{MODULE}.py").read_text()
    assert (site / "torchvision.py").exists()


def test_a_real_torchvision_is_left_alone(tmp_path: Path) -> None:
    environment, _, _ = installed(tmp_path)
    (environment.site_packages / "torchvision.py").unlink()
    (environment.site_packages / "torchvision").mkdir()
    environment.place_plugin()
    assert not (environment.site_packages / "torchvision.py").exists()


def test_removing_leaves_nothing(tmp_path: Path) -> None:
    environment, _, _ = installed(tmp_path)
    assert environment.remove()
    assert not environment.folder.exists()
    assert not environment.remove()


def test_a_command_that_fails_says_its_last_lines() -> None:
    with pytest.raises(EnvironmentFailure, match=r"status 3.*\n.*no such package"):
        run_command(["sh", "-c", "echo no such package; exit 3"])
    with pytest.raises(EnvironmentFailure, match="cannot run /nowhere"):
        run_command(["/nowhere"])

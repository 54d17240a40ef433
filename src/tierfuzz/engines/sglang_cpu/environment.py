"""Where a CPU engine is installed, whether it is complete, and our plugin in it."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import msgspec

from tierfuzz.cachedir import cache_folder
from tierfuzz.engines.sglang_cpu import plugin, torchvision_stand_in
from tierfuzz.engines.sglang_cpu.pins import CHECKSUM, check_version
from tierfuzz.errors import EnvironmentFailure

MODULE = "tierfuzz_sglang_cpu"
DIST_INFO = {
    "METADATA": f"Metadata-Version: 2.1\nName: {MODULE.replace('_', '-')}\nVersion: 1\n",
    "entry_points.txt": f"[sglang.srt.plugins]\ntierfuzz_cpu = {MODULE}:activate\n",
    "INSTALLER": "tierfuzz\n",
}


class State(msgspec.Struct):
    """What was done so far: names of steps, and the checksum of the list that they follow."""

    version: str
    checksum: str = CHECKSUM
    done: list[str] = []
    complete: bool = False


class CpuEnvironment:
    """The environment of one version."""

    def __init__(self, version: str, root: Path | None = None) -> None:
        self.version = check_version(version)
        self.folder = (root or cache_folder()) / "engines" / f"sglang-cpu-{version}"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "venv" / "bin" / "python"

    @property
    def state(self) -> State:
        """As written down; a new one where there is none, or where it follows another list."""
        try:
            state = msgspec.json.decode(self._state_file.read_bytes(), type=State)
        except (OSError, msgspec.DecodeError):
            return State(self.version)
        return state if state.checksum == CHECKSUM else State(self.version)

    def write_state(self, state: State) -> None:
        """At once or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        partial = self._state_file.with_suffix(".new")
        partial.write_bytes(msgspec.json.encode(state))
        partial.replace(self._state_file)

    @property
    def _state_file(self) -> Path:
        return self.folder / "state.json"

    @property
    def installed(self) -> bool:
        """Every step was done."""
        return self.state.complete and self.python.exists()

    @property
    def missing(self) -> str:
        """What to say where it is not installed."""
        return (
            f"engine sglang-cpu {self.version} is not installed: "
            f"run `tierfuzz engine install sglang-cpu --version {self.version}` first"
        )

    def require(self) -> Path:
        """The interpreter, with the plugin of this tierfuzz; EnvironmentFailure where it is not installed."""
        if not self.installed:
            raise EnvironmentFailure(self.missing)
        self.place_plugin()
        return self.python

    def remove(self) -> bool:
        """Delete all of it; False when there was nothing."""
        there = self.folder.exists()
        shutil.rmtree(self.folder, ignore_errors=False) if there else None
        return there

    # the plugin ------------------------------------------------------------------------------------
    @property
    def site_packages(self) -> Path:
        """Where its modules are."""
        found = sorted((self.folder / "venv" / "lib").glob("python3.*/site-packages"))
        if not found:
            raise EnvironmentFailure(f"{self.folder} has no site-packages; remove the engine and install it")
        return found[0]

    def place_plugin(self) -> None:
        """Write the plugin and the torchvision stand-in, where they are not there as they are here."""
        site = self.site_packages
        files = {site / f"{MODULE}.py": _source(plugin.__file__)}
        if not (site / "torchvision").exists():
            files[site / "torchvision.py"] = _source(torchvision_stand_in.__file__)
        for name, text in DIST_INFO.items():
            files[site / f"{MODULE}-1.dist-info" / name] = text.encode()
        for path, content in files.items():
            if not path.exists() or path.read_bytes() != content:
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(content)


def _source(path: str) -> bytes:
    return Path(path).read_bytes()


def steps_name(requirements: list[str]) -> str:
    """A name for a group of requirements that changes when they do."""
    return hashlib.sha256("\n".join(requirements).encode()).hexdigest()[:12]

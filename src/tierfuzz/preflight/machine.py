"""Whether this machine can run real engines: one check a line. Nothing is started or changed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator

from tierfuzz.cachedir import cache_folder
from tierfuzz.engines.sglang.driver import PYTHON_VARIABLE
from tierfuzz.engines.sglang.gpus import TOOL
from tierfuzz.engines.sglang_cpu.environment import CpuEnvironment
from tierfuzz.engines.sglang_cpu.pins import PYTHONS, VERSIONS
from tierfuzz.preflight.seen import Check

LEAST_MEMORY_GB = 10.0  # an engine refuses to start when its host pool would leave less than that (1)


def machine_checks() -> list[Check]:
    """None of these is needed for the simulated worker."""
    return [_python(), *_cpu_engines(), _gpu(), _sglang(), _memory()]


def _python() -> Check:
    known = ", ".join(f"{major}.{minor}" for major, minor in PYTHONS)
    return Check(
        "python",
        sys.version_info[:2] in PYTHONS,
        sys.version.split()[0],
        f"run tierfuzz with one of {known} to install CPU engines",
        needed=False,
    )


def _cpu_engines() -> Iterator[Check]:
    for version in VERSIONS:
        installed = CpuEnvironment(version).installed
        yield Check(
            f"engine sglang-cpu {version}",
            installed,
            "installed" if installed else f"not installed in {cache_folder()}",
            f"tierfuzz engine install sglang-cpu --version {version}",
            needed=False,
        )


def _gpu() -> Check:
    there = shutil.which(TOOL) is not None
    return Check(
        "GPU",
        there,
        f"{TOOL} is there" if there else f"no {TOOL}",
        "engine sglang needs one; sglang-cpu does not",
        needed=False,
    )


def _sglang() -> Check:
    other = os.environ.get(PYTHON_VARIABLE)
    if other:
        there = shutil.which(other) is not None
        return Check(
            "engine sglang", there, f"{PYTHON_VARIABLE} names {other}", "name a Python", needed=False
        )
    there = importlib.util.find_spec("sglang") is not None
    return Check(
        "engine sglang",
        there,
        "sglang can be imported" if there else "sglang cannot be imported",
        f"install SGLang beside tierfuzz, or name a Python that has it in {PYTHON_VARIABLE}",
        needed=False,
    )


def _memory() -> Check:
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    return Check(
        "memory",
        free >= LEAST_MEMORY_GB,
        f"{free:.0f} GB free",
        f"real engines want {LEAST_MEMORY_GB:g} GB to be left free beside their host pool",
        needed=False,
    )

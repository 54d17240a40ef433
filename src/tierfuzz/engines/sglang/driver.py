"""SGLang as an engine: a real server of its own Python environment, on a GPU."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from tierfuzz.codec import Wire
from tierfuzz.engines.base import Capacities, Control, Launch, event_block, host_pool_tokens, require
from tierfuzz.engines.sglang.checks import differences
from tierfuzz.engines.sglang.gpus import gpu_of, has_gpu
from tierfuzz.engines.sglang.litter import shared_memory_files
from tierfuzz.engines.sglang.options import ADMIN_KEY, TOPIC, Ports, SglangOptions, options_for
from tierfuzz.engines.sglang.versions import DEFAULT_VERSION, traits_of, wire_of
from tierfuzz.engines.sglang.weights import model_of
from tierfuzz.errors import UsageError
from tierfuzz.program import FleetConfig
from tierfuzz.traits import Traits
from tierfuzz.worker.http import WorkerClient

PYTHON_VARIABLE = "TIERFUZZ_SGLANG_PYTHON"
CORE_VARIABLE = "SGLANG_UNIFIED_RADIX_TREE_CORE_BACKEND"


class SglangDriver:
    """Starts `python -m sglang.launch_server` of this Python, or of the one that the variable names.

    Its scheduler may say idle in the pass before it publishes, and its publisher sends one batch a turn: two
    idle answers and two equal readings of the replay prove rest. The first request of a shape compiles
    kernels, which takes up to minutes; so do starts.
    """

    name = "sglang"
    ports_needed = 4
    confirmations = 2
    ready_bound_s = 600.0
    request_bound_s = 120.0
    rest_bound_s = 60.0
    stop_grace_s = 15.0
    dear_restarts = True
    holds_copies = False
    fresh_gauges = False
    controls = frozenset({Control.FLUSH, Control.ABORT, Control.IDLE_PROBE, Control.STORAGE})
    storage_variable = "SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR"

    def launch(self, config: FleetConfig, worker: int, ports: list[int]) -> Launch:
        """Ports: HTTP, events, replay, rendezvous. The worker connects to the event subscriber."""
        options = self.options(config, worker, Ports(*ports))
        return Launch(
            command=[self.python(config), "-m", "sglang.launch_server", *options.flags()],
            env=self.environment(config, worker),
            base_url=f"http://127.0.0.1:{options.ports.http}",
            events_endpoint=f"tcp://127.0.0.1:{options.ports.events}",
            replay_endpoint=f"tcp://127.0.0.1:{options.ports.replay}",
            topic=TOPIC,
            api_key=ADMIN_KEY,
            events_bind=True,
        )

    def unavailable(self, config: FleetConfig) -> str:
        """It needs a GPU, and the engine's package."""
        del config
        if not has_gpu():
            return f"engine {self.name} needs a GPU: no nvidia-smi was found on this machine"
        if not os.environ.get(PYTHON_VARIABLE) and importlib.util.find_spec("sglang") is None:
            return (
                f"engine {self.name} needs SGLang: it cannot be imported, and {PYTHON_VARIABLE} names no "
                "Python that has it"
            )
        return ""

    # what a driver of another build changes --------------------------------------------------------
    def options(self, config: FleetConfig, worker: int, ports: Ports) -> SglangOptions:
        """Typed options of one worker."""
        if config.plants:
            raise UsageError(
                f"--plant with engine {self.name}: faults can be planted in the simulated worker only"
            )
        return options_for(config, worker, ports, model_of(config))

    def python(self, config: FleetConfig) -> str:
        """The interpreter that has the engine."""
        del config
        return os.environ.get(PYTHON_VARIABLE) or sys.executable

    def environment(self, config: FleetConfig, worker: int) -> dict[str, str]:
        """Added to the environment of the worker."""
        gpu = gpu_of(worker, os.environ.get("CUDA_VISIBLE_DEVICES"))
        return {
            "HF_HUB_OFFLINE": "1",
            **({"CUDA_VISIBLE_DEVICES": gpu} if gpu else {}),
            **({CORE_VARIABLE: config.tree_core} if config.tree_core else {}),
        }

    # what it is ------------------------------------------------------------------------------------
    def traits(self, config: FleetConfig) -> Traits:
        """Of the version that is asked for."""
        return traits_of(config.engine_version or DEFAULT_VERSION)

    def event_wire(self, config: FleetConfig) -> Wire:
        """Of the version that is asked for."""
        return wire_of(config.engine_version or DEFAULT_VERSION)

    def capacities(self, info: dict[str, Any]) -> Capacities:
        """The device pool is what the engine could take; the host pool follows from it."""
        page, device = int(require(info, "page_size")), int(require(info, "max_total_num_tokens"))
        host = host_pool_tokens(info, device, page)
        return Capacities(page, device, host, str(require(info, "hicache_write_policy")), event_block(info))

    def differences(self, config: FleetConfig, info: dict[str, Any]) -> list[str]:
        """What the worker took otherwise than asked; sizes and policy are for the fleet to compare."""
        asked = self.options(config, 0, Ports(0, 0, 0, 0))
        return differences(asked, info, config.engine_version)

    def litter(self, pid: int) -> list[Path]:
        """Files outside its folders that the engine leaves behind (B20)."""
        return shared_memory_files(pid)

    # what it cannot --------------------------------------------------------------------------------
    def hold(self, client: WorkerClient) -> None:
        """Copies cannot be held back."""
        raise UsageError(f"{client.base_url}: copies of a real engine cannot be held back")

    def release(self, client: WorkerClient) -> None:
        """Nothing is held back."""
        raise UsageError(f"{client.base_url}: copies of a real engine cannot be held back")

"""SGLang on a CPU as an engine: the same server, in the environment that `tierfuzz engine install` made."""

from __future__ import annotations

from dataclasses import replace

from tierfuzz.engines.sglang.driver import SglangDriver
from tierfuzz.engines.sglang.options import Ports, SglangOptions
from tierfuzz.engines.sglang.versions import DEFAULT_VERSION
from tierfuzz.engines.sglang_cpu.environment import CpuEnvironment
from tierfuzz.engines.sglang_cpu.plugin import DELAY_VARIABLE
from tierfuzz.errors import UsageError
from tierfuzz.program import FleetConfig


class SglangCpuDriver(SglangDriver):
    """Starts in 15 to 40 s on a quiet machine; a request takes 20 to 40 ms. `ack_delay_ms` makes copies
    count as done that much later. What it cannot show: kernels, CUDA graphs, races of GPU streams."""

    name = "sglang-cpu"
    ready_bound_s = 240.0
    request_bound_s = 60.0
    rest_bound_s = 30.0

    def unavailable(self, config: FleetConfig) -> str:
        """It has to be installed."""
        environment = CpuEnvironment(config.engine_version or DEFAULT_VERSION)
        return "" if environment.installed else environment.missing

    def options(self, config: FleetConfig, worker: int, ports: Ports) -> SglangOptions:
        """Those of the GPU, with what a CPU needs."""
        if config.cuda_graphs:
            raise UsageError("--cuda-graphs with engine sglang-cpu: there are none on a CPU")
        options = super().options(config, worker, ports)
        return replace(
            options,
            device="cpu",
            attention="torch_native",
            io_backend="direct",
            memory_share=0.3,
            sleeps=True,
        )

    def python(self, config: FleetConfig) -> str:
        """That of the installed environment."""
        return str(CpuEnvironment(config.engine_version or DEFAULT_VERSION).require())

    def environment(self, config: FleetConfig, worker: int) -> dict[str, str]:
        """No GPU, Triton interpreted (the page allocator needs it), one thread a worker."""
        return {
            **super().environment(config, worker),
            "PYTHONPATH": "",  # its packages are its own
            "CUDA_VISIBLE_DEVICES": "",
            "SGLANG_USE_CPU_ENGINE": "0",
            "TRITON_INTERPRET": "1",
            "OMP_NUM_THREADS": "1",
            DELAY_VARIABLE: str(config.ack_delay_ms),
        }

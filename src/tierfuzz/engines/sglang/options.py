"""What one SGLang worker is started with: a typed configuration, and the command line that says the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from tierfuzz.program import FleetConfig, WritePolicy

TOPIC = "kv-events"
ADMIN_KEY = "tierfuzz"  # of workers on loopback that nobody else uses; without one nothing says idle (6.4)

Device = Literal["cuda", "cpu"]
LoadFormat = Literal["dummy", "auto"]


@dataclass(frozen=True)
class Ports:
    """Loopback ports of one worker. `internal` is the rendezvous of its processes: engines that choose it
    themselves, started at the same moment, may choose the same."""

    http: int
    events: int
    replay: int
    internal: int


@dataclass(frozen=True)
class SglangOptions:
    """One worker. Sizes in tokens; `host_gb` over 0 replaces `host_ratio`; `memory_share` of the device for
    weights and cache together; `chunked_prefill` <= 0: no limit; `sleeps`: a scheduler that is fully idle
    waits instead of polling; `extra` goes last and so wins."""

    model: Path
    ports: Ports
    page_size: int
    device_tokens: int
    policy: WritePolicy
    host_ratio: float = 2.0
    host_gb: int = 0
    eviction: str = "lru"
    chunked_prefill: int = 8192
    storage_threshold: int = 0
    load_format: LoadFormat = "dummy"
    device: Device = "cuda"
    attention: str = "triton"
    io_backend: str = "kernel"
    memory_share: float = 0.08
    cuda_graphs: bool = False
    overlap: bool = True
    sleeps: bool = False
    seed: int = 0
    extra: tuple[str, ...] = ()

    def flags(self) -> list[str]:
        """The command line after `-m sglang.launch_server`."""
        return [*self._engine(), *self._cache(), *self._storage(), *self.extra]

    def _engine(self) -> list[str]:
        valued = {
            "--model-path": self.model,
            "--load-format": self.load_format,
            "--host": "127.0.0.1",
            "--port": self.ports.http,
            "--nccl-port": self.ports.internal,
            "--device": self.device,
            "--attention-backend": self.attention,
            "--sampling-backend": "pytorch",
            "--grammar-backend": "none",
            "--mem-fraction-static": self.memory_share,
            "--admin-api-key": ADMIN_KEY,
            "--random-seed": self.seed,
            "--log-level": "info",
        }
        switches = ["--skip-server-warmup", "--enable-cache-report", "--enable-metrics"]
        switches += [] if self.cuda_graphs else ["--disable-cuda-graph"]
        switches += ["--sleep-on-idle"] if self.sleeps else []
        switches += [] if self.overlap else ["--disable-overlap-schedule"]
        return [*_words(valued), *switches]

    def _cache(self) -> list[str]:
        valued: dict[str, object] = {
            "--max-total-tokens": self.device_tokens,
            "--page-size": self.page_size,
            "--chunked-prefill-size": self.chunked_prefill if self.chunked_prefill > 0 else -1,
            "--radix-eviction-policy": self.eviction,
            "--hicache-write-policy": self.policy,
            "--hicache-io-backend": self.io_backend,
            "--kv-events-config": self.events_config(),
        }
        size = ("--hicache-size", self.host_gb) if self.host_gb else ("--hicache-ratio", self.host_ratio)
        return ["--enable-hierarchical-cache", *_words({**valued, size[0]: size[1]})]

    def _storage(self) -> list[str]:
        if not self.storage_threshold:
            return []
        extra = msgspec.json.encode({"prefetch_threshold": self.storage_threshold}).decode()
        return _words(
            {
                "--hicache-storage-backend": "file",
                "--hicache-storage-prefetch-policy": "wait_complete",
                "--hicache-storage-backend-extra-config": extra,
            }
        )

    def events_config(self) -> str:
        """Events without a wildcard: the worker connects to the subscriber, so that no socket of the event
        publisher listens beyond loopback (3.1: it binds wildcards only)."""
        return msgspec.json.encode(
            {
                "publisher": "zmq",
                "topic": TOPIC,
                "endpoint": f"tcp://127.0.0.1:{self.ports.events}",
                "replay_endpoint": f"tcp://127.0.0.1:{self.ports.replay}",
            }
        ).decode()


def options_for(config: FleetConfig, worker: int, ports: Ports, model: Path) -> SglangOptions:
    """The options of one worker of a fleet."""
    return SglangOptions(
        model=model,
        ports=ports,
        page_size=config.page_size,
        device_tokens=config.device_tokens,
        policy=config.policy,
        host_ratio=config.host_ratio,
        chunked_prefill=config.chunked_prefill,
        storage_threshold=config.storage_threshold,
        cuda_graphs=config.cuda_graphs,
        overlap=config.overlap,
        load_format="auto" if config.weights == "random" else "dummy",
        seed=config.seed + worker,
        extra=config.extra_args,
    )


def _words(valued: Mapping[str, object]) -> list[str]:
    return [str(part) for pair in valued.items() for part in pair]

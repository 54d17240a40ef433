"""What a simulated worker is told to be: resolved options, and the sizes that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from tierfuzz.errors import UsageError
from tierfuzz.model.config import EngineConfig, StorageConfig
from tierfuzz.model.rules import Rules, rules_for
from tierfuzz.program import WritePolicy

KV_BYTES_PER_TOKEN = 1024  # of the recordings' model; only --hicache-size needs it
RESERVED_INPUT_TOKENS = 6  # max_req_input_len = D - 6, as the recorded server says
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")

PrefetchPolicy = Literal["wait_complete", "timeout"]


class EventSocketConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`--kv-events-config` with the engine's defaults (engine-semantics 3.1, 8)."""

    publisher: str = "null"
    endpoint: str = "tcp://*:5557"
    replay_endpoint: str | None = None
    buffer_steps: Annotated[int, msgspec.Meta(ge=0)] = 10_000
    hwm: Annotated[int, msgspec.Meta(ge=0)] = 100_000
    max_queue_size: Annotated[int, msgspec.Meta(ge=1)] = 100_000
    topic: str = ""
    bind: bool | None = None  # 0.5.23: force bind or connect
    format: Literal["default"] = "default"  # 0.5.23


def parse_event_config(text: str) -> EventSocketConfig:
    """Read the JSON of `--kv-events-config`; UsageError for anything that would publish nothing."""
    try:
        config = msgspec.json.decode(text, type=EventSocketConfig)
    except msgspec.DecodeError as error:
        raise UsageError(
            f"--kv-events-config {text!r}: {error}; expected the JSON of an event publisher"
        ) from error
    if config.publisher != "zmq":
        raise UsageError(
            f'--kv-events-config names publisher {config.publisher!r}; expected "publisher":"zmq" '
            "(with any other the real engine dies at start, defect B11)"
        )
    return config


class StorageOptions(msgspec.Struct, frozen=True):
    """Own keys of `--hicache-storage-backend-extra-config` (reference 1); sizes in tokens, times in s."""

    prefetch_threshold: Annotated[int, msgspec.Meta(ge=0)] = 256
    prefetch_timeout_base: float = 2.0
    prefetch_timeout_per_ki_token: float = 0.1
    prefetch_timeout_max: float = 30.0
    hicache_storage_pass_prefix_keys: bool = False


def parse_storage_options(text: str | None) -> StorageOptions:
    """Read the extra config of the storage backend: JSON, or `@file` of JSON; else UsageError."""
    if text is None:
        return StorageOptions()
    try:
        data = Path(text[1:]).read_bytes() if text.startswith("@") else text
        return msgspec.json.decode(data, type=StorageOptions)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"storage extra config {text!r}: {error}; expected JSON or @file of JSON") from error


@dataclass(frozen=True)
class SimOptions:
    """Resolved options of one simulated worker. Sizes in tokens, times in milliseconds."""

    host: str = "127.0.0.1"
    port: int = 30000
    page_size: int = 1
    device_tokens: int = 8192
    hicache_ratio: float = 2.0
    hicache_size_gb: int = 0
    policy: WritePolicy = "write_through"
    chunked_prefill: int = 8192
    max_running: int = 256
    decode_log_interval: int = 40
    overlap: bool = True
    events: EventSocketConfig | None = None
    events_text: str | None = None
    storage_backend: str | None = None
    storage_policy: PrefetchPolicy = "timeout"
    storage_extra: str | None = None
    cache_report: bool = False
    metrics: bool = False
    admin_api_key: str | None = None
    served_model_name: str = "tiny"
    profile: str = "default"
    changed_rules: tuple[tuple[str, bool | int | str], ...] = ()
    plants: tuple[str, ...] = ()
    ack_delay_ms: float = 0.0
    step_delay_ms: float = 0.0
    publish_delay_ms: float = 0.0
    output_reserve: int = 4096
    ranks: int = 1
    seed: int = 0
    ignored: tuple[tuple[str, object], ...] = ()

    @property
    def host_tokens(self) -> int:
        """Host pool by the formula of engine-semantics 1: whole pages of the raw size, and one page more."""
        if self.hicache_size_gb > 0:
            raw = int(self.hicache_size_gb * 1e9 // KV_BYTES_PER_TOKEN)
        else:
            raw = int(self.device_tokens * self.hicache_ratio)
        return (raw // self.page_size + 1) * self.page_size

    @property
    def max_input_tokens(self) -> int:
        """A prompt of this many tokens or more is refused."""
        return self.device_tokens - RESERVED_INPUT_TOKENS

    @property
    def version(self) -> str:
        """The engine version whose surface is shown."""
        return "0.5.23" if self.rules().unified else "0.5.17"

    def rules(self) -> Rules:
        """The profile's rules. Without overlap the last output is never decoded, so P+n-1 is stored (5.2)."""
        rules = rules_for(self.profile).but(**dict(self.changed_rules))
        return rules if self.overlap else rules.but(last_output_not_decoded=True)

    def engine_config(self) -> EngineConfig:
        """Sizes and policy for the step model."""
        threshold = parse_storage_options(self.storage_extra).prefetch_threshold
        return EngineConfig(
            page_size=self.page_size,
            device_tokens=self.device_tokens,
            host_tokens=self.host_tokens,
            policy=self.policy,
            chunked_prefill=self.chunked_prefill,
            storage=StorageConfig(threshold) if self.storage_backend else None,
            max_running=self.max_running,
            decode_log_interval=self.decode_log_interval,
            output_reserve=self.output_reserve,
        )

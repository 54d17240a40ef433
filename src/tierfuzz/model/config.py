"""Sizes and policies of one modelled worker."""

from __future__ import annotations

from dataclasses import dataclass

from tierfuzz.errors import UsageError
from tierfuzz.program import WritePolicy


@dataclass(frozen=True)
class StorageConfig:
    """A storage tier behind the host (reference 5.8); `threshold`: fewest tokens worth a prefetch."""

    threshold: int = 256


@dataclass(frozen=True)
class EngineConfig:
    """One worker. Pools in tokens, whole pages; `chunked_prefill` tokens a pass, <= 0 for no limit.

    `output_reserve`: most outputs of a request, in tokens, that admission keeps room for (5.5); where more
    are asked for, decode can run out of room, and requests are retracted (6.3).
    """

    page_size: int = 16
    device_tokens: int = 1024
    host_tokens: int = 2064
    policy: WritePolicy = "write_through"
    chunked_prefill: int = 8192
    storage: StorageConfig | None = None
    max_running: int = 256
    decode_log_interval: int = 40
    output_reserve: int = 4096

    def __post_init__(self) -> None:
        """Refuse sizes that are no whole number of pages."""
        for name in ("device_tokens", "host_tokens"):
            value = getattr(self, name)
            if value < self.page_size or value % self.page_size:
                raise UsageError(
                    f"{name}={value}: expected a positive multiple of the page size {self.page_size}"
                )
        if self.chunked_prefill > 0 and self.chunked_prefill % self.page_size:
            raise UsageError(
                f"chunked_prefill={self.chunked_prefill}: "
                f"expected a multiple of the page size {self.page_size}"
            )

    @property
    def device_pages(self) -> int:
        """Device pool in pages."""
        return self.device_tokens // self.page_size

    @property
    def host_pages(self) -> int:
        """Host pool in pages."""
        return self.host_tokens // self.page_size

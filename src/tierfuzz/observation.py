"""What the runner saw of one request: the reply's accounting, as data."""

from __future__ import annotations

from typing import Literal

import msgspec


class TierSplit(msgspec.Struct, frozen=True, omit_defaults=True):
    """`cached_tokens_details` of a reply, in tokens (reference 2.1)."""

    device: int = 0
    host: int = 0
    storage: int = 0

    @property
    def total(self) -> int:
        """Sum over the tiers, in tokens."""
        return self.device + self.host + self.storage


class Observation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One request as its client saw it. Times are monotonic seconds; tokens are counts.

    `status` is ok, aborted or failed (no usable reply: `error` says why). `split` is None when the reply
    had null details. `prompt_tokens` is None for a request that was aborted before it started.
    `retractions`: how often it had to wait again after it had started; its prefix may then have been loaded
    again, which no reply counts (2.1, 6.3).
    `quiet_start`: the worker was at rest when the request was sent, and no other request ran beside it.
    """

    operation: str
    worker: int
    namespace: str | None
    prompt: tuple[int, ...]
    requested_outputs: int
    status: Literal["ok", "aborted", "failed"]
    started: float
    ended: float
    output_ids: tuple[int, ...] = ()
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    split: TierSplit | None = None
    logprob_start: int | None = None
    alone: bool = True
    quiet_start: bool = False
    error: str = ""
    retractions: int = 0
    first_logprobs: tuple[tuple[int, float], ...] = ()

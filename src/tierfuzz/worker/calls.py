"""Requests to a worker and what came back, as values; their wire form on /generate (reference 2, 2.1)."""

from __future__ import annotations

from typing import Literal

import msgspec

from tierfuzz.errors import RequestFailed
from tierfuzz.observation import TierSplit

Failure = Literal["", "unreachable", "timeout", "http", "shape"]
Status = Literal["ok", "aborted", "failed"]


class Call(msgspec.Struct, frozen=True):
    """One request to send. `abort_after_s`: seconds after which the client aborts it, or None.

    `forced_outputs` are honoured by the simulated worker only: output tokens to give instead of its own.
    `top_logprobs`: of how many tokens the first answer's log probabilities are asked for.
    """

    rid: str
    tokens: tuple[int, ...]
    outputs: int
    namespace: str | None = None
    logprob_start: int | None = None
    abort_after_s: float | None = None
    forced_outputs: tuple[int, ...] | None = None
    top_logprobs: int = 0


class Answer(msgspec.Struct, frozen=True):
    """What came back; times are monotonic seconds, counts are tokens.

    A failed one says how in `failure`: unreachable (refused, reset), timeout, http (an error status) or shape
    (not the expected reply), and in `error` for people. `split` is None for null details. `retractions`: how
    often it had to wait again after it had started (6.3). `first_logprobs`: (token, log probability) of the
    likeliest first outputs, where they were asked for.
    """

    status: Status
    started: float
    ended: float
    output_ids: tuple[int, ...] = ()
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    split: TierSplit | None = None
    retractions: int = 0
    first_logprobs: tuple[tuple[int, float], ...] = ()
    failure: Failure = ""
    error: str = ""

    def usable(self) -> Answer:
        """Itself; RequestFailed for a failed one."""
        if self.status == "failed":
            raise RequestFailed(f"{self.failure}: {self.error}")
        return self


# The request ---------------------------------------------------------------------------------------
class _Custom(msgspec.Struct):
    forced_output_ids: tuple[int, ...]


class _Sampling(msgspec.Struct, omit_defaults=True):
    max_new_tokens: int
    temperature: int
    ignore_eos: bool
    custom_params: _Custom | None = None


class _Request(msgspec.Struct, omit_defaults=True):
    rid: str
    input_ids: tuple[int, ...]
    sampling_params: _Sampling
    extra_key: str | None = None
    return_logprob: bool = False
    logprob_start_len: int | None = None
    top_logprobs_num: int = 0
    routed_dp_rank: int | None = None


_encode = msgspec.json.Encoder().encode


def request_body(call: Call, rank: int | None = None) -> bytes:
    """The JSON that /generate takes: greedy, and never ended by an end-of-text token; `rank` None: any."""
    forced = call.forced_outputs
    custom = None if forced is None else _Custom(forced)
    return _encode(
        _Request(
            call.rid,
            call.tokens,
            _Sampling(call.outputs, 0, True, custom),
            call.namespace or None,
            call.logprob_start is not None or call.top_logprobs > 0,
            call.logprob_start,
            call.top_logprobs,
            rank,
        )
    )


# The reply -----------------------------------------------------------------------------------------
class Details(msgspec.Struct):
    """`cached_tokens_details`; `storage` is there only where a backend is or was attached."""

    device: int
    host: int
    storage: int = 0

    def split(self) -> TierSplit:
        """The same as the value that oracles use."""
        return TierSplit(self.device, self.host, self.storage)


class _Finish(msgspec.Struct):
    type: Literal["length", "stop", "abort"]
    message: str | None = None


class _Meta(msgspec.Struct):
    finish_reason: _Finish
    prompt_tokens: int | msgspec.UnsetType | None = msgspec.UNSET
    cached_tokens: int | msgspec.UnsetType | None = msgspec.UNSET
    cached_tokens_details: Details | msgspec.UnsetType | None = msgspec.UNSET
    num_retractions: int | None = None
    output_top_logprobs: list[list[tuple[float, int, str | None]] | None] | None = None


class _Reply(msgspec.Struct):
    meta_info: _Meta
    output_ids: tuple[int, ...] | msgspec.UnsetType | None = msgspec.UNSET


_decoder = msgspec.json.Decoder(_Reply)


def read_reply(body: bytes, started: float, ended: float) -> Answer:
    """Read the JSON of /generate strictly; msgspec.DecodeError says what is missing or of another type.

    Only a request that was aborted may lack its counts: one that never started has none.
    """
    reply = _decoder.decode(body)
    meta = reply.meta_info
    outputs, details = reply.output_ids, meta.cached_tokens_details
    prompt, cached = meta.prompt_tokens, meta.cached_tokens
    aborted = meta.finish_reason.type == "abort"
    if not aborted:
        _need("output_ids", outputs)
        _need("meta_info.prompt_tokens", prompt)
        _need("meta_info.cached_tokens", cached)
        if details is msgspec.UNSET:
            raise msgspec.ValidationError("Object missing required field `meta_info.cached_tokens_details`")
    return Answer(
        status="aborted" if aborted else "ok",
        started=started,
        ended=ended,
        output_ids=outputs or (),
        prompt_tokens=None if prompt is msgspec.UNSET else prompt,
        cached_tokens=None if cached is msgspec.UNSET else cached,
        split=details.split() if isinstance(details, Details) else None,
        retractions=meta.num_retractions or 0,
        first_logprobs=_first(meta.output_top_logprobs),
    )


def _first(top: list[list[tuple[float, int, str | None]] | None] | None) -> tuple[tuple[int, float], ...]:
    """Of the first output: token and log probability."""
    return tuple((token, value) for value, token, _ in top[0]) if top and top[0] else ()


def _need(name: str, value: object) -> None:
    if value is None or value is msgspec.UNSET:
        raise msgspec.ValidationError(f"Object missing required field `{name}`")

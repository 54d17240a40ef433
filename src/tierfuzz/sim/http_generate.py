"""POST /generate: the native endpoint (reference 2, 2.1)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated, Any, cast

import msgspec
from starlette.types import Receive, Send

from tierfuzz.model.request import Request
from tierfuzz.prompts import text_of, tokens_of_text
from tierfuzz.sim.asgi import JsonEndpoint, Refused, answer, encode, send_events
from tierfuzz.sim.serving import Call, Served, Serving
from tierfuzz.sim.shapes import logprobs, meta_info, namespace, top_logprobs
from tierfuzz.sim.state import SimWorker

DEFAULT_OUTPUTS = 128
TOKEN_LIMIT = 1 << 31
Token = Annotated[int, msgspec.Meta(ge=0, lt=TOKEN_LIMIT)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class CustomParams(msgspec.Struct):
    """Our own key: outputs to give instead of the computed ones (to follow a recording)."""

    forced_output_ids: tuple[Token, ...] | None = None


class SamplingParams(msgspec.Struct):
    """What matters of the sampling parameters; temperature, stops and the like change nothing here."""

    max_new_tokens: Count | None = DEFAULT_OUTPUTS
    n: int = 1
    custom_params: CustomParams | None = None


class GenerateBody(msgspec.Struct):
    """The body; unknown keys are ignored, as the engine does."""

    text: str | list[str] | None = None
    input_ids: list[Token | list[Token]] | None = None
    sampling_params: SamplingParams = msgspec.field(default_factory=SamplingParams)
    stream: bool = False
    rid: str | list[str] | None = None
    extra_key: str | None = None
    cache_salt: str | None = None
    return_logprob: bool = False
    logprob_start_len: int | None = None
    top_logprobs_num: Count = 0
    routed_dp_rank: int | None = None
    data_parallel_rank: int | None = None  # the older name of it

    @property
    def rank(self) -> int | None:
        """The rank that is asked for, or None for any."""
        return self.routed_dp_rank if self.routed_dp_rank is not None else self.data_parallel_rank


class Generate:
    """Serves /generate; a list of prompts gives a list of replies."""

    def __init__(self, worker: SimWorker) -> None:
        self._worker = worker
        self._serving = Serving(worker)

    def endpoint(self) -> JsonEndpoint:
        """The ASGI endpoint."""
        return JsonEndpoint(msgspec.json.Decoder(GenerateBody), self._serve, _error)

    async def _serve(self, body: GenerateBody, receive: Receive, send: Send) -> None:
        prompts, batched = prompts_of(body)
        requests = [self._request(body, prompt, i, batched) for i, prompt in enumerate(prompts)]
        if body.stream:
            if batched:
                raise Refused("stream with several prompts: expected one prompt a streamed request")
            await send_events(send, self._stream(body, requests[0], receive), _error)
            return
        served = await self._serving.serve(requests, receive, body.rank)
        replies = [self._reply(body, *both) for both in zip(requests, served, strict=True)]
        await answer(send, 200, encode(replies if batched else replies[0]))

    async def _stream(
        self, body: GenerateBody, request: Request, receive: Receive
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Each chunk repeats the outputs so far."""
        async for served in self._serving.stream(request, receive, body.rank):
            yield self._reply(body, request, served)

    def _request(self, body: GenerateBody, tokens: tuple[int, ...], index: int, batched: bool) -> Request:
        params = body.sampling_params
        if params.n != 1:
            raise Refused(f"n={params.n}: the simulated worker answers once a prompt; send n=1")
        start = body.logprob_start_len
        custom = params.custom_params
        call = Call(
            tokens=tokens,
            max_new=params.max_new_tokens,
            namespace=namespace(self._worker, body.extra_key, body.cache_salt, openai=False),
            logprob_start=start if body.return_logprob and start is not None and start >= 0 else None,
            forced=custom.forced_output_ids if custom is not None else None,
            rid=_rid(body.rid, index, batched),
        )
        return self._serving.request(call)

    def _reply(self, body: GenerateBody, request: Request, served: Served) -> dict[str, Any]:
        outputs = served.reply.output_ids
        meta = meta_info(self._worker, served)
        if body.return_logprob:
            meta |= logprobs(request, served.reply)
        if body.return_logprob and body.top_logprobs_num:
            meta |= top_logprobs(served.reply, body.top_logprobs_num)
        return {"text": text_of(outputs), "output_ids": outputs, "meta_info": meta}


def prompts_of(body: GenerateBody) -> tuple[list[tuple[int, ...]], bool]:
    """The prompts as token ids, and whether they came as a list; Refused unless there is exactly one kind."""
    if (body.text is None) == (body.input_ids is None):
        raise Refused("expected either text or input_ids")
    if isinstance(body.text, str):
        return [text_tokens(body.text)], False
    if body.text is not None:
        return [text_tokens(text) for text in body.text], True
    assert body.input_ids is not None
    return token_lists(body.input_ids)


def text_tokens(text: str) -> tuple[int, ...]:
    """A prompt's text as token ids; Refused for a word that names an id beyond 31 bits."""
    tokens = tokens_of_text(text)
    if tokens and (largest := max(tokens)) >= TOKEN_LIMIT:
        raise Refused(f"word w{largest}: expected a token id below {TOKEN_LIMIT}")
    return tokens


def token_lists(ids: list[int | list[int]]) -> tuple[list[tuple[int, ...]], bool]:
    """One prompt or several, as tuples; Refused for a mixture."""
    kinds = set(map(type, ids))  # without a loop of our own: prompts are long
    if kinds <= {int}:
        return [tuple(cast(list[int], ids))], False
    if int in kinds:
        raise Refused("a list of token ids and lists: expected one prompt, or a list of prompts")
    return [tuple(prompt) for prompt in cast(list[list[int]], ids)], True


def _rid(rid: str | list[str] | None, index: int, batched: bool) -> str | None:
    if isinstance(rid, list):
        if index >= len(rid):
            raise Refused(f"{len(rid)} rids for more prompts; expected one each")
        return rid[index]
    return f"{rid}_{index}" if rid is not None and batched else rid


def _error(message: str, status: int) -> dict[str, Any]:
    del status
    return {"error": {"message": message}}

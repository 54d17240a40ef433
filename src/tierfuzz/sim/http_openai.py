"""POST /v1/completions and /v1/chat/completions (reference 2.2)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import msgspec
from starlette.types import Receive, Send

from tierfuzz.model.request import Request
from tierfuzz.sim.asgi import JsonEndpoint, Refused, answer, encode, send_events
from tierfuzz.sim.http_generate import Count, CustomParams, Token, text_tokens, token_lists
from tierfuzz.sim.openai_shapes import Shape, usage
from tierfuzz.sim.serving import Call, Served, Serving
from tierfuzz.sim.shapes import details, namespace
from tierfuzz.sim.state import SimWorker

DEFAULT_OUTPUTS = 16  # of /v1/completions; a chat goes on as long as there is room


class StreamOptions(msgspec.Struct):
    """What the last chunks of a stream hold."""

    include_usage: bool = False


class OpenAiBody(msgspec.Struct):
    """What both endpoints share; unknown keys are ignored, as the engine does."""

    model: str = ""
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: int = 1
    rid: str | None = None
    cache_salt: str | None = None
    extra_key: str | None = None
    return_cached_tokens_details: bool = False
    custom_params: CustomParams | None = None
    max_tokens: Count | None = None


class CompletionBody(OpenAiBody):
    """/v1/completions; the prompt may be text, token ids, or a list of either."""

    prompt: str | list[str | Token | list[Token]] = msgspec.field(default_factory=list)


class ContentPart(msgspec.Struct):
    """A part of a message; only text is read."""

    type: str
    text: str = ""


class Message(msgspec.Struct):
    """One message of a chat."""

    role: str
    content: str | list[ContentPart] | None = None


class ChatBody(OpenAiBody):
    """/v1/chat/completions."""

    messages: list[Message] = msgspec.field(default_factory=list)
    max_completion_tokens: Count | None = None


class OpenAi:
    """Serves both endpoints. The chat template adds nothing: a chat is its messages' words, in order."""

    def __init__(self, worker: SimWorker) -> None:
        self._worker = worker
        self._serving = Serving(worker)

    def completions(self) -> JsonEndpoint:
        """The ASGI endpoint of /v1/completions."""
        return JsonEndpoint(msgspec.json.Decoder(CompletionBody), self._complete, _error)

    def chat(self) -> JsonEndpoint:
        """The ASGI endpoint of /v1/chat/completions."""
        return JsonEndpoint(msgspec.json.Decoder(ChatBody), self._chat, _error)

    async def _complete(self, body: CompletionBody, receive: Receive, send: Send) -> None:
        max_new = DEFAULT_OUTPUTS if body.max_tokens is None else body.max_tokens
        prompts = completion_prompts(body.prompt)
        await self._serve(body, prompts, max_new, Shape("text_completion", self._worker), receive, send)

    async def _chat(self, body: ChatBody, receive: Receive, send: Send) -> None:
        max_new = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
        prompts = [text_tokens(" ".join(_text(message) for message in body.messages))]
        await self._serve(body, prompts, max_new, Shape("chat.completion", self._worker), receive, send)

    async def _serve(
        self,
        body: OpenAiBody,
        prompts: list[tuple[int, ...]],
        max_new: int | None,
        shape: Shape,
        receive: Receive,
        send: Send,
    ) -> None:
        if body.n != 1:
            raise Refused(f"n={body.n}: the simulated worker answers once a prompt; send n=1")
        requests = [self._request(body, prompt, max_new, i) for i, prompt in enumerate(prompts)]
        if body.stream:
            if len(requests) > 1:
                raise Refused("stream with several prompts: expected one prompt a streamed request")
            await send_events(send, self._stream(body, requests[0], shape, receive), _error)
            return
        served = await self._serving.serve(requests, receive)
        await answer(send, 200, encode(self._whole(body, served, requests, shape)))

    def _request(self, body: OpenAiBody, tokens: tuple[int, ...], max_new: int | None, index: int) -> Request:
        rid = body.rid if index == 0 or body.rid is None else f"{body.rid}_{index}"
        call = Call(
            tokens=tokens,
            max_new=max_new,
            namespace=namespace(self._worker, body.extra_key, body.cache_salt, openai=True),
            forced=body.custom_params.forced_output_ids if body.custom_params is not None else None,
            rid=rid,
        )
        return self._serving.request(call)

    def _whole(
        self, body: OpenAiBody, served: list[Served], requests: list[Request], shape: Shape
    ) -> dict[str, Any]:
        whole = shape.whole(body.model, served)
        whole["usage"] = usage(self._worker, requests, [one.reply for one in served])
        whole |= self._sglext(body, served[0])
        return whole

    async def _stream(
        self, body: OpenAiBody, request: Request, shape: Shape, receive: Receive
    ) -> AsyncGenerator[dict[str, Any], None]:
        sent, last = 0, None
        for chunk in shape.opening(body.model, request.rid):
            yield chunk
        async for served in self._serving.stream(request, receive):
            for chunk in shape.content(body.model, served, sent):
                yield chunk
            sent, last = len(served.reply.output_ids), served
        assert last is not None
        if extension := self._sglext(body, last):
            yield shape.chunk(body.model, request.rid, []) | extension
        if body.stream_options is not None and body.stream_options.include_usage:
            found = usage(self._worker, [request], [last.reply])
            yield shape.chunk(body.model, request.rid, []) | {"usage": found}

    def _sglext(self, body: OpenAiBody, served: Served) -> dict[str, Any]:
        """The extension, of the first choice only; nothing when not asked for or nothing was counted."""
        found = details(self._worker, served.reply) if body.return_cached_tokens_details else None
        return {"sglext": {"cached_tokens_details": found}} if found is not None else {}


def completion_prompts(prompt: str | list[str | int | list[int]]) -> list[tuple[int, ...]]:
    """Every prompt as token ids; Refused for a mixture."""
    if isinstance(prompt, str):
        return [text_tokens(prompt)]
    texts = [text for text in prompt if isinstance(text, str)]
    if texts and len(texts) == len(prompt):
        return [text_tokens(text) for text in texts]
    if texts:
        raise Refused("a prompt of texts and token ids: expected one kind")
    return token_lists([ids for ids in prompt if not isinstance(ids, str)])[0]


def _text(message: Message) -> str:
    if isinstance(message.content, list):
        return " ".join(part.text for part in message.content if part.type == "text")
    return message.content or ""


def _error(message: str, status: int) -> dict[str, Any]:
    kind = "BadRequestError" if status == 400 else "ServiceUnavailableError"
    return {"object": "error", "message": message, "type": kind, "param": None, "code": status}

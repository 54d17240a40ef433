"""The OpenAI endpoints: requests, whole replies and streams, with the tier split in `sglext` (2.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from tierfuzz.observation import TierSplit
from tierfuzz.worker.calls import Details

DATA = b"data: "
DONE = b"[DONE]"


class OpenAiCall(msgspec.Struct, frozen=True):
    """One request. `prompt` is text or token ids; a chat takes text, as the words of one user message.

    `salt` and `namespace` are `cache_salt` and `extra_key`, which engines concatenate (reference 2.4).
    """

    prompt: str | tuple[int, ...]
    outputs: int
    chat: bool = False
    stream: bool = False
    namespace: str | None = None
    salt: str | None = None
    rid: str | None = None
    model: str = "default"


class OpenAiAnswer(msgspec.Struct, frozen=True):
    """A reply, streamed or not. Counts in tokens.

    `split` is None where `sglext` was left out; `cached_tokens` None where usage does not report it.
    """

    text: str
    finish: str
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    split: TierSplit | None


def openai_path(call: OpenAiCall) -> str:
    """Where the request goes."""
    return "/v1/chat/completions" if call.chat else "/v1/completions"


def openai_body(call: OpenAiCall) -> bytes:
    """The JSON of the request; a stream is asked for its usage chunk too."""
    body: dict[str, Any] = {
        "model": call.model,
        "max_tokens": call.outputs,
        "temperature": 0,
        "ignore_eos": True,
        "return_cached_tokens_details": True,
        "stream": call.stream,
    }
    if call.chat:
        body["messages"] = [{"role": "user", "content": call.prompt}]
    else:
        body["prompt"] = call.prompt
    if call.stream:
        body["stream_options"] = {"include_usage": True}
    optional = {"extra_key": call.namespace, "cache_salt": call.salt, "rid": call.rid}
    return msgspec.json.encode(body | {key: value for key, value in optional.items() if value is not None})


# Replies -------------------------------------------------------------------------------------------
class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    finish_reason: str | None
    text: str | None = None
    message: _Message | None = None
    delta: _Message | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int


class _Usage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int
    prompt_tokens_details: _PromptDetails | None = None


class _Extension(msgspec.Struct):
    cached_tokens_details: Details


class _Body(msgspec.Struct):
    """A whole reply, or one chunk of a stream; an error of a stream comes as a chunk."""

    object: Literal["text_completion", "chat.completion", "chat.completion.chunk"]
    choices: list[_Choice]
    usage: _Usage | None = None
    sglext: _Extension | None = None


_body = msgspec.json.Decoder(_Body)


def read_openai(call: OpenAiCall, data: bytes) -> OpenAiAnswer:
    """Read the reply to `call`; msgspec.DecodeError says what is not as it should be."""
    bodies = [_body.decode(chunk) for chunk in _chunks(data)] if call.stream else [_body.decode(data)]
    choices = [choice for body in bodies for choice in body.choices]
    finish = next((choice.finish_reason for choice in reversed(choices) if choice.finish_reason), None)
    if finish is None:
        raise msgspec.ValidationError(f"{len(choices)} choices without a finish_reason; expected one")
    usage = next((body.usage for body in reversed(bodies) if body.usage is not None), None)
    extension = next((body.sglext for body in bodies if body.sglext is not None), None)
    details = usage.prompt_tokens_details if usage is not None else None
    return OpenAiAnswer(
        text="".join(_text(choice) for choice in choices),
        finish=finish,
        prompt_tokens=usage.prompt_tokens if usage is not None else None,
        completion_tokens=usage.completion_tokens if usage is not None else None,
        cached_tokens=details.cached_tokens if details is not None else None,
        split=extension.cached_tokens_details.split() if extension is not None else None,
    )


def _text(choice: _Choice) -> str:
    part = choice.message or choice.delta
    return (part.content if part is not None else choice.text) or ""


def _chunks(data: bytes) -> Iterator[bytes]:
    """Payloads of server-sent events, up to the end mark, which has to be there."""
    for line in data.splitlines():
        if not line:
            continue
        if not line.startswith(DATA):
            raise msgspec.DecodeError(f"stream line {line[:60]!r}; expected 'data: ...'")
        if line == DATA + DONE:
            return
        yield line.removeprefix(DATA)
    raise msgspec.DecodeError("the stream ended without data: [DONE]")

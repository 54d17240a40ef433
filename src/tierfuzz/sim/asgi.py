"""Small ASGI pieces: reading a body, answering, refusing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

JSON = b"application/json"
EVENT_STREAM = b"text/event-stream"

Handler = Callable[[Request], Awaitable[Response]]
ErrorShape = Callable[[str, int], Any]
encode = msgspec.json.Encoder().encode


class Refused(Exception):
    """A request that gets an error instead of an answer: HTTP status and a message for the client."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class HungUp(Exception):
    """The client is gone; nobody reads an answer."""


async def read_body(receive: Receive) -> bytes:
    """The whole request body."""
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body", False):
        message = await receive()
        body += message.get("body", b"")
    if message["type"] == "http.disconnect":
        raise HungUp
    return body


async def answer(send: Send, status: int, body: bytes, content_type: bytes = JSON) -> None:
    """A complete response."""
    length = str(len(body)).encode()
    headers = [(b"content-type", content_type), (b"content-length", length)]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def send_events(send: Send, chunks: AsyncGenerator[Any, None], shape: ErrorShape) -> None:
    """Server-sent events: `data: ...` chunks, then `data: [DONE]`; a late error is a chunk too."""
    started = False
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                if not started:
                    headers = [(b"content-type", EVENT_STREAM)]
                    await send({"type": "http.response.start", "status": 200, "headers": headers})
                    started = True
                await _send_event(send, encode(chunk), True)
    except Refused as refused:
        if not started:
            raise
        await _send_event(send, encode(shape(str(refused), refused.status)), True)
    await _send_event(send, b"[DONE]", False)


async def _send_event(send: Send, data: bytes, more: bool) -> None:
    body = b"data: " + data + b"\n\n"
    await send({"type": "http.response.body", "body": body, "more_body": more})


def json_response(value: Any, status: int = 200) -> Response:
    """A JSON response for the handlers that are not on the hot path."""
    return Response(encode(value), status, media_type="application/json")


def text_response(text: str, status: int = 200) -> Response:
    """A plain-text response, as the engine's control endpoints give."""
    return Response(text + "\n", status, media_type="text/plain")


def refusable(handler: Handler) -> Handler:
    """Turn Refused into its response."""

    async def wrapped(request: Request) -> Response:
        try:
            return await handler(request)
        except Refused as refused:
            return text_response(str(refused), refused.status)

    return wrapped


class JsonEndpoint:
    """A raw ASGI endpoint: decoded body in, whatever `serve` sends out; `shape` forms the error body."""

    def __init__(
        self,
        decoder: msgspec.json.Decoder[Any],
        serve: Callable[[Any, Receive, Send], Awaitable[None]],
        shape: ErrorShape,
    ) -> None:
        self._decoder = decoder
        self._serve = serve
        self._shape = shape

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one call; a client that hung up gets nothing."""
        del scope
        try:
            body = await read_body(receive)
            await self._serve(self._decoder.decode(body), receive, send)
        except Refused as refused:
            await answer(send, refused.status, encode(self._shape(str(refused), refused.status)))
        except msgspec.DecodeError as error:
            await answer(send, 400, encode(self._shape(f"bad request body: {error}", 400)))
        except HungUp:
            return

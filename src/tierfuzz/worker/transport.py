"""HTTP exchanges with one worker: kept-alive connections, little work per request, failures by kind.

httpx's transport is used without its Client: redirects, cookies, proxies and logging are of no use between
two processes of one machine, and each request would pay for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import httpx

from tierfuzz.errors import RequestFailed

CONNECT_TIMEOUT_S = 5.0
KEEP_ALIVE_S = 4.0  # below the 5 s after which servers close idle connections: never meet a close in use
SHOWN_BYTES = 300


class Exchange(NamedTuple):
    """Status and body of a response."""

    status: int
    body: bytes

    @property
    def shown(self) -> str:
        """Status and the start of the body, for messages."""
        return f"{self.status}: {self.body[:SHOWN_BYTES].decode(errors='replace')}"


class Transport:
    """Connections to one base URL; usable from several threads. Timeouts in seconds."""

    def __init__(self, base_url: str, headers: Mapping[str, str], timeout_s: float) -> None:
        self.base_url = base_url.rstrip("/")
        self.timeout_s = timeout_s
        url = httpx.URL(self.base_url)
        host = url.netloc.decode()
        self._headers = httpx.Headers({"Host": host, "Content-Type": "application/json", **headers})
        self._urls: dict[str, httpx.URL] = {}
        self._verify = url.scheme == "https"
        self._http = self._open()

    def _open(self) -> httpx.HTTPTransport:
        limits = httpx.Limits(keepalive_expiry=KEEP_ALIVE_S)
        return httpx.HTTPTransport(verify=self._verify, trust_env=False, limits=limits)

    def send(
        self, method: str, path: str, content: bytes | None = None, timeout_s: float | None = None
    ) -> Exchange:
        """One exchange, body complete; httpx.RequestError when there was none."""
        limit = self.timeout_s if timeout_s is None else timeout_s
        timeout = {"connect": min(CONNECT_TIMEOUT_S, limit), "read": limit, "write": limit, "pool": limit}
        request = httpx.Request(
            method, self._url(path), headers=self._headers, content=content, extensions={"timeout": timeout}
        )
        response = self._http.handle_request(request)
        return Exchange(response.status_code, response.read())

    def call(
        self, method: str, path: str, content: bytes | None = None, timeout_s: float | None = None
    ) -> Exchange:
        """The same, but RequestFailed, which names the URL and what happened, when there was none."""
        try:
            return self.send(method, path, content, timeout_s)
        except httpx.RequestError as error:
            failure, text = why(error)
            raise RequestFailed(f"{method} {self.base_url}{path}: {failure}: {text}", failure) from error

    def _url(self, path: str) -> httpx.URL:
        url = self._urls.get(path)
        if url is None:
            url = self._urls[path] = httpx.URL(self.base_url + path)
        return url

    def reconnect(self) -> None:
        """Drop every connection: the worker behind the address is another one now."""
        self._http.close()
        self._http = self._open()

    def close(self) -> None:
        """Close every connection."""
        self._http.close()


def why(error: httpx.RequestError) -> tuple[Literal["unreachable", "timeout"], str]:
    """The kind of a failed exchange, and a text for people."""
    name = type(error).__name__
    if isinstance(error, httpx.TimeoutException):
        return "timeout", f"no reply within the bound ({name})"
    return "unreachable", f"{name}: {error}"

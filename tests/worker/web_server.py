"""A small HTTP server on loopback whose answers a test writes itself."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answering = Callable[[bytes], "tuple[int, bytes | dict[str, Any]]"]


@dataclass
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    body: bytes
    headers: dict[str, str]
    peer: int


@dataclass
class WebServer:
    """`answers` by path, without the query; a missing one is 404."""

    base_url: str
    answers: dict[str, Answering] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)

    def always(self, path: str, status: int, body: bytes | dict[str, Any] = b"") -> None:
        """The same answer every time."""
        self.answers[path] = lambda _: (status, body)


def _missing(_: bytes) -> tuple[int, bytes]:
    return 404, b"no such path"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # a burst must not wait for a second SYN

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.web = WebServer(f"http://127.0.0.1:{self.server_port}")


@contextmanager
def serving() -> Iterator[WebServer]:
    """A running server; requests are served side by side."""
    server = _Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.web
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet an answer
    disable_nagle_algorithm = True

    def _answer(self) -> None:
        assert isinstance(self.server, _Server)
        web = self.server.web
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        peer = self.client_address[1]
        headers = {str(name): str(value) for name, value in self.headers.items()}
        web.seen.append(Seen(self.command, self.path, body, headers, peer))
        answering = web.answers.get(self.path.partition("?")[0], _missing)
        status, reply = answering(body)
        data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = _answer

    def log_message(self, format: str, *args: Any) -> None:
        """Be quiet."""

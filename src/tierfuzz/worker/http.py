"""HTTP client of one worker: requests, bursts, flush, the idle probe, metrics (reference 2, 6.4)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from queue import SimpleQueue
from threading import Event
from typing import Any

import httpx
import msgspec

from tierfuzz.clock import SYSTEM_CLOCK, Clock
from tierfuzz.errors import RequestFailed
from tierfuzz.worker.calls import Answer, Call, Failure, read_reply, request_body
from tierfuzz.worker.openai import OpenAiAnswer, OpenAiCall, openai_body, openai_path, read_openai
from tierfuzz.worker.prometheus import read_metrics
from tierfuzz.worker.transport import SHOWN_BYTES, Exchange, Transport, why

MOST_PARALLEL = 256
FLUSH_SLACK_S = 5.0  # the answer may come that much after the worker's own deadline
PROBE_BODY = b'{"hicache_storage_backend":"file","hicache_write_policy":"tierfuzz-idle-probe"}'
_encode = msgspec.json.Encoder().encode

__all__ = ["Answer", "Call", "OpenAiAnswer", "OpenAiCall", "WorkerClient"]


class WorkerClient:
    """One keep-alive client; usable from several threads. Timeouts in seconds.

    Requests give answers, failed ones too; everything else raises RequestFailed. `api_key` goes with every
    request (the admin key, where the worker has one: flush and the idle probe need it). `rank`: requests and
    levels are those of one data-parallel rank; everything else is of the whole worker.
    """

    def __init__(
        self,
        base_url: str,
        clock: Clock = SYSTEM_CLOCK,
        api_key: str | None = None,
        timeout_s: float = 30.0,
        rank: int | None = None,
    ) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._clock = clock
        self._rank = rank
        self._http = Transport(base_url, headers, timeout_s)
        self.base_url = self._http.base_url
        self._threads: ThreadPoolExecutor | None = None

    def close(self) -> None:
        """Close connections and threads."""
        if self._threads is not None:
            self._threads.shutdown(wait=True)
            self._threads = None
        self._http.close()

    def reconnect(self) -> None:
        """Drop every connection; call it when the worker was restarted at the same address."""
        self._http.reconnect()

    # requests --------------------------------------------------------------------------------------
    def generate(self, call: Call, timeout_s: float | None = None) -> Answer:
        """Send one request to /generate and wait for its reply; a failure is an answer too."""
        started = self._clock.monotonic()
        body = request_body(call, self._rank)
        try:
            exchange = self._http.send("POST", "/generate", body, timeout_s)
        except httpx.RequestError as error:
            return self._failed(started, *why(error))
        ended = self._clock.monotonic()
        if exchange.status != 200:
            return self._failed(started, "http", exchange.shown)
        try:
            return read_reply(exchange.body, started, ended)
        except msgspec.DecodeError as error:
            return self._failed(started, "shape", f"unexpected reply: {error}; got {exchange.shown}")

    def _failed(self, started: float, failure: Failure, error: str) -> Answer:
        error = f"{self.base_url}/generate: {error}"
        return Answer("failed", started, self._clock.monotonic(), failure=failure, error=error)

    def generate_many(self, calls: Sequence[Call]) -> list[Answer]:
        """Send requests together, abort those that ask for it, and wait for all; answers in call order."""
        pool = self._pool()
        start = self._clock.monotonic()
        futures = [pool.submit(self.generate, call) for call in calls]
        pairs = [(c.abort_after_s, c.rid, f) for c, f in zip(calls, futures, strict=True)]
        aborts = [(delay, rid, future) for delay, rid, future in pairs if delay is not None]
        for delay, rid, future in sorted(aborts, key=lambda abort: abort[0]):
            self._wait_until(start + delay, future)
            if not future.done():
                self.abort(rid)
        return [future.result() for future in futures]

    def generate_in_turn(self, calls: Sequence[Call]) -> Generator[Answer, None, None]:
        """Send requests one after another, each as soon as the one before was answered; answers in order.

        What the caller does with an answer overlaps the worker's next request. Nothing is sent after a
        failed one, nor after the iterator was closed.
        """
        answers: SimpleQueue[Answer | None] = SimpleQueue()
        stop = Event()

        def feed() -> None:
            try:
                for call in calls:
                    if stop.is_set():
                        return
                    answer = self.generate(call)
                    answers.put(answer)
                    if answer.status == "failed":
                        return
            finally:
                answers.put(None)

        feeder = self._pool().submit(feed)
        try:
            yield from iter(answers.get, None)
        finally:
            stop.set()
            feeder.result()

    def _pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(MOST_PARALLEL, thread_name_prefix="tierfuzz-burst")
        return self._threads

    def _wait_until(self, due: float, future: Future[Answer]) -> None:
        """Until `due`, or until there is nothing left to abort."""
        left = due - self._clock.monotonic()
        if left > 0:
            wait((future,), left, FIRST_EXCEPTION)

    def abort(self, rid: str) -> None:
        """Ask the worker to abort a request; what became of it, its own answer says."""
        try:
            self._http.send("POST", "/abort_request", _encode({"rid": rid}))
        except httpx.RequestError:
            return

    def openai(self, call: OpenAiCall, timeout_s: float | None = None) -> OpenAiAnswer:
        """Send one request to /v1/completions or /v1/chat/completions; RequestFailed for what is no reply."""
        path = openai_path(call)
        exchange = self._ok("POST", path, openai_body(call), timeout_s)
        try:
            return read_openai(call, exchange.body)
        except msgspec.DecodeError as error:
            raise self._unexpected(path, str(error), exchange) from error

    # control ---------------------------------------------------------------------------------------
    def flush(self, timeout_s: float) -> bool:
        """Empty device and host; False when the worker was not fully idle within `timeout_s` seconds."""
        path = f"/flush_cache?timeout={timeout_s:g}"
        exchange = self._http.call("POST", path, None, timeout_s + FLUSH_SLACK_S)
        if exchange.status not in (200, 400):
            raise self._unexpected(path, "expected 200 or 400", exchange)
        return exchange.status == 200

    def idle(self, timeout_s: float | None = None) -> bool | None:
        """Whether the scheduler is fully idle, without changing anything; None when it cannot be asked (6.4).

        Asks for a write policy that does not exist: the worker checks idleness first, then the name.
        """
        body = self._http.call("PUT", "/hicache/storage-backend", PROBE_BODY, timeout_s).body
        if b"not idle" in body:
            return False
        return True if b"Invalid hicache_write_policy" in body else None

    def control(self, **what: str) -> dict[str, Any]:
        """Control endpoint of the simulated worker, e.g. copies="hold"; its reply."""
        return self._object("POST", "/sim/control", _encode(what))

    def attach_storage(self, policy: str, threshold: int) -> bool:
        """Attach file storage (or keep it) and ask for a write policy; False when the worker refuses."""
        body = {
            "hicache_storage_backend": "file",
            "hicache_storage_backend_extra_config_json": _encode({"prefetch_threshold": threshold}).decode(),
            "hicache_storage_prefetch_policy": "wait_complete",
            "hicache_write_policy": policy,
        }
        return self._http.call("PUT", "/hicache/storage-backend", _encode(body)).status == 200

    def detach_storage(self) -> bool:
        """Detach storage; False when the worker refuses."""
        return self._http.call("DELETE", "/hicache/storage-backend").status == 200

    def clear_storage(self) -> None:
        """Empty the storage tier; the engine answers success whatever happens (B12)."""
        self._ok("POST", "/hicache/storage-backend/clear", None, None)

    # looking ---------------------------------------------------------------------------------------
    def healthy(self, timeout_s: float | None = None) -> bool:
        """The worker answers /health with 200."""
        try:
            return self._http.send("GET", "/health", None, timeout_s).status == 200
        except httpx.RequestError:
            return False

    def server_info(self, timeout_s: float | None = None) -> dict[str, Any]:
        """/server_info as a dict."""
        return self._object("GET", "/server_info", None, timeout_s)

    def metrics(self) -> dict[str, float]:
        """Every metric by name and by telling label (see read_metrics); empty where metrics are off."""
        exchange = self._http.call("GET", "/metrics")
        if exchange.status == 404:
            return {}
        if exchange.status != 200:
            raise self._unexpected("/metrics", "expected 200, or 404 where metrics are off", exchange)
        try:
            return read_metrics(exchange.body.decode(), self._rank)
        except ValueError as error:
            raise self._unexpected("/metrics", f"not Prometheus text: {error}", exchange) from error

    # helpers ---------------------------------------------------------------------------------------
    def _ok(self, method: str, path: str, content: bytes | None, timeout_s: float | None) -> Exchange:
        exchange = self._http.call(method, path, content, timeout_s)
        if exchange.status != 200:
            raise self._unexpected(path, "expected status 200", exchange)
        return exchange

    def _object(
        self, method: str, path: str, content: bytes | None = None, timeout_s: float | None = None
    ) -> dict[str, Any]:
        exchange = self._ok(method, path, content, timeout_s)
        try:
            return msgspec.json.decode(exchange.body, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise self._unexpected(path, f"expected a JSON object: {error}", exchange) from error

    def _unexpected(self, path: str, what: str, exchange: Exchange) -> RequestFailed:
        shown = exchange.shown if exchange.body else f"{exchange.status}: (empty)"
        return RequestFailed(f"{self.base_url}{path}: {what}; got {shown[: SHOWN_BYTES + 5]}")

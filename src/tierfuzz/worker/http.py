"""HTTP client of one worker: requests, bursts, flush, the idle probe (reference 2, 6.4)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import httpx
import msgspec
from prometheus_client.parser import text_string_to_metric_families

from tierfuzz.clock import Clock
from tierfuzz.errors import RequestFailed
from tierfuzz.observation import TierSplit

MOST_PARALLEL = 16
PROBE_BODY = b'{"hicache_storage_backend":"file","hicache_write_policy":"tierfuzz-idle-probe"}'


class Call(msgspec.Struct, frozen=True):
    """One request to send. `abort_after_s`: seconds after which the client aborts it, or None."""

    rid: str
    tokens: tuple[int, ...]
    outputs: int
    namespace: str | None = None
    logprob_start: int | None = None
    abort_after_s: float | None = None
    forced_outputs: tuple[int, ...] | None = None


class Answer(msgspec.Struct, frozen=True):
    """What came back. `failure` is "" or one of unreachable, timeout, http, shape; times in seconds."""

    status: Literal["ok", "aborted", "failed"]
    started: float
    ended: float
    output_ids: tuple[int, ...] = ()
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    split: TierSplit | None = None
    failure: str = ""
    error: str = ""


class _Finish(msgspec.Struct):
    type: str


class _Meta(msgspec.Struct):
    finish_reason: _Finish
    prompt_tokens: int | None
    cached_tokens: int | None = None
    cached_tokens_details: TierSplit | None = None


class _Body(msgspec.Struct):
    meta_info: _Meta
    output_ids: tuple[int, ...] | None = None


_body = msgspec.json.Decoder(_Body)
_encode = msgspec.json.Encoder().encode


class WorkerClient:
    """One keep-alive client; usable from several threads. Timeouts in seconds."""

    def __init__(
        self, base_url: str, clock: Clock, api_key: str | None = None, timeout_s: float = 30.0
    ) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        limits = httpx.Limits(max_connections=2 * MOST_PARALLEL, max_keepalive_connections=2 * MOST_PARALLEL)
        self.base_url = base_url
        self._clock = clock
        self._http = httpx.Client(base_url=base_url, headers=headers, timeout=timeout_s, limits=limits)
        self._pool: ThreadPoolExecutor | None = None

    def close(self) -> None:
        """Close connections and threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)
        self._http.close()

    # requests --------------------------------------------------------------------------------------
    def generate(self, call: Call) -> Answer:
        """Send one request and wait for its reply; failures are answers, not exceptions."""
        started = self._clock.monotonic()
        try:
            response = self._http.post("/generate", content=_encode(_request(call)))
            if response.status_code != 200:
                return self._failed(started, "http", f"{response.status_code}: {response.text[:300]}")
            body = _body.decode(response.content)
        except httpx.TimeoutException as error:
            return self._failed(started, "timeout", f"no reply within the bound ({type(error).__name__})")
        except httpx.TransportError as error:
            return self._failed(started, "unreachable", f"{type(error).__name__}: {error}")
        except msgspec.DecodeError as error:
            return self._failed(started, "shape", f"unexpected reply: {error}: {response.text[:300]}")
        return self._answer(started, body)

    def _failed(self, started: float, failure: str, error: str) -> Answer:
        return Answer("failed", started, self._clock.monotonic(), failure=failure, error=error)

    def _answer(self, started: float, body: _Body) -> Answer:
        meta = body.meta_info
        return Answer(
            status="aborted" if meta.finish_reason.type == "abort" else "ok",
            started=started,
            ended=self._clock.monotonic(),
            output_ids=body.output_ids or (),
            prompt_tokens=meta.prompt_tokens,
            cached_tokens=meta.cached_tokens,
            split=meta.cached_tokens_details,
        )

    def generate_many(self, calls: Sequence[Call]) -> list[Answer]:
        """Send requests together, abort those that ask for it, and wait for all."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(MOST_PARALLEL, thread_name_prefix="tierfuzz-burst")
        start = self._clock.monotonic()
        futures = [self._pool.submit(self.generate, call) for call in calls]
        aborts = sorted((c.abort_after_s, c.rid) for c in calls if c.abort_after_s is not None)
        for delay, rid in aborts:
            self._clock.sleep(max(0.0, start + delay - self._clock.monotonic()))
            self.abort(rid)
        return [future.result() for future in futures]

    def abort(self, rid: str) -> None:
        """Ask the worker to abort a request; a worker that is gone is found out by its reply."""
        try:
            self._http.post("/abort_request", content=_encode({"rid": rid}))
        except httpx.TransportError:
            return

    # control ---------------------------------------------------------------------------------------
    def flush(self, timeout_s: float) -> bool:
        """Empty device and host; False when the worker was not idle within `timeout_s` seconds."""
        return self._call("POST", f"/flush_cache?timeout={timeout_s}").status_code == 200

    def idle(self) -> bool | None:
        """Whether the scheduler is fully idle, without changing anything; None when it cannot be asked."""
        response = self._call("PUT", "/hicache/storage-backend", PROBE_BODY)
        if "not idle" in response.text:
            return False
        return True if "Invalid hicache_write_policy" in response.text else None

    def healthy(self) -> bool:
        """The worker answers /health."""
        try:
            return self._http.get("/health").status_code == 200
        except httpx.TransportError:
            return False

    def server_info(self) -> dict[str, Any]:
        """/server_info as a dict."""
        response = self._call("GET", "/server_info")
        try:
            return msgspec.json.decode(response.content, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise RequestFailed(f"{self.base_url}/server_info: not JSON: {response.text[:200]}") from error

    def metrics(self) -> dict[str, float]:
        """Every metric, summed over its labels; empty where metrics are off."""
        response = self._call("GET", "/metrics")
        found: dict[str, float] = {}
        if response.status_code == 200:
            for family in text_string_to_metric_families(response.text):
                for sample in family.samples:
                    found[sample.name] = found.get(sample.name, 0.0) + sample.value
        return found

    def control(self, **what: str) -> None:
        """Control endpoint of the simulated worker, e.g. copies="hold"."""
        response = self._call("POST", "/sim/control", _encode(what))
        if response.status_code != 200:
            raise RequestFailed(f"{self.base_url}/sim/control {what}: {response.status_code} {response.text}")

    def _call(self, method: str, path: str, content: bytes | None = None) -> httpx.Response:
        try:
            return self._http.request(method, path, content=content)
        except httpx.TransportError as error:
            raise RequestFailed(f"{method} {self.base_url}{path}: {type(error).__name__}: {error}") from error


def _request(call: Call) -> dict[str, Any]:
    sampling: dict[str, Any] = {"max_new_tokens": call.outputs, "temperature": 0, "ignore_eos": True}
    if call.forced_outputs is not None:
        sampling["custom_params"] = {"forced_output_ids": call.forced_outputs}
    body: dict[str, Any] = {"rid": call.rid, "input_ids": call.tokens, "sampling_params": sampling}
    if call.namespace:
        body["extra_key"] = call.namespace
    if call.logprob_start is not None:
        body |= {"return_logprob": True, "logprob_start_len": call.logprob_start}
    return body

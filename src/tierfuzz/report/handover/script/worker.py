"""The worker over HTTP: requests and what they say, and the few things one can ask it to do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import httpx

Reply = dict[str, Any]
IDLE_PROBE = {"hicache_storage_backend": "file", "hicache_write_policy": "tierfuzz-idle-probe"}
ABORT_AGAIN_S = 0.002
GAUGES = ("num_running_reqs", "num_queue_reqs")


class Gone(Exception):
    """The worker does not answer, or not as a worker does."""


class Worker:
    """One worker. `bound` is the longest wait for an answer, in seconds."""

    def __init__(self, url: str, key: str, bound: float) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        limits = httpx.Limits(max_connections=None, keepalive_expiry=4.0)
        self.url = url.rstrip("/")
        self.http = httpx.Client(
            base_url=self.url, headers=headers, timeout=bound, trust_env=False, limits=limits
        )

    def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        try:
            return self.http.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise Gone(f"{method} {self.url}{path}: {type(error).__name__}: {error}") from error

    def info(self) -> dict[str, Any]:
        answer = self.ask("GET", "/server_info")
        try:
            found = answer.json()
        except ValueError:
            found = None
        if answer.status_code != 200 or not isinstance(found, dict):
            raise Gone(f"{self.url}/server_info: expected a worker, got {answer.status_code}")
        return found

    # requests --------------------------------------------------------------------------------------
    def generate(self, call: dict[str, Any], ready: Callable[[], object] = bool) -> Reply:
        """One request, sent when `ready` returns; a failure is a reply too, its reason under "failed"."""
        request = self.http.build_request("POST", "/generate", json=body_of(call))
        ready()
        try:
            answer = self.http.send(request)
            return read_reply(answer.json()) if answer.status_code == 200 else {"failed": answer.text[:200]}
        except httpx.TimeoutException as error:
            return {"failed": f"no answer within the bound ({type(error).__name__})", "kind": "hang"}
        except httpx.HTTPError as error:
            return {"failed": f"{type(error).__name__}: {error}", "kind": "crash"}
        except (ValueError, KeyError, TypeError) as error:
            return {"failed": f"not the answer of a worker: {error!r}"}

    def together(self, calls: list[dict[str, Any]]) -> list[Reply]:
        """Several at once; each is aborted after its delay, where it has one."""
        together = threading.Barrier(len(calls))
        with ThreadPoolExecutor(2 * len(calls)) as pool:
            replies = [pool.submit(self.generate, call, together.wait) for call in calls]
            for call, reply in zip(calls, replies, strict=True):
                if call.get("abort_after_s") is not None:
                    pool.submit(self.abort, call["rid"], call["abort_after_s"], reply)
            return [reply.result() for reply in replies]

    def abort(self, rid: str, delay: float, reply: Future[Reply]) -> None:
        """After `delay` seconds, and again until it is answered: what has not arrived cannot be aborted."""
        wait([reply], delay)
        while not reply.done():
            try:
                self.http.post("/abort_request", json={"rid": rid})
            except httpx.HTTPError:
                return  # its own request says what became of it
            wait([reply], ABORT_AGAIN_S)

    # control ---------------------------------------------------------------------------------------
    def flush(self, bound: float) -> bool:
        """Empty device and host; False when the worker was not idle within `bound` seconds."""
        return self.ask("POST", f"/flush_cache?timeout={bound:g}").status_code == 200

    def idle(self) -> bool | None:
        """Whether nothing is in flight, changing nothing: the worker checks that first, then the (wrong)
        policy. None when it cannot be asked."""
        text = self.ask("PUT", "/hicache/storage-backend", IDLE_PROBE).text
        if "not idle" in text:
            return False
        return True if "Invalid hicache_write_policy" in text else None

    def gauges(self) -> dict[str, float]:
        """Sums of the metrics by name, without the prefix of the engine; {} where there are none."""
        answer = self.ask("GET", "/metrics")
        found: dict[str, float] = {}
        for line in answer.text.splitlines() if answer.status_code == 200 else []:
            name, _, value = line.partition("{")[0].partition(" ")
            value = line.rpartition(" ")[2]
            if name.startswith("sglang:"):
                name = name.removeprefix("sglang:")
                found[name] = found.get(name, 0.0) + float(value)
        return found


def body_of(call: dict[str, Any]) -> dict[str, Any]:
    """What /generate takes: greedy, and never ended by an end-of-text token."""
    sampling = {"max_new_tokens": call["outputs"], "temperature": 0, "ignore_eos": True}
    body = {"rid": call["rid"], "input_ids": call["tokens"], "sampling_params": sampling}
    if call.get("namespace"):
        body["extra_key"] = call["namespace"]
    if call.get("logprob_start") is not None:
        body |= {"return_logprob": True, "logprob_start_len": call["logprob_start"]}
    return body


def read_reply(answer: dict[str, Any]) -> Reply:
    """The accounting of a reply, in tokens; a request that was aborted before it started has none."""
    meta = answer["meta_info"]
    split = meta.get("cached_tokens_details") or {}
    return {
        "aborted": meta["finish_reason"]["type"] == "abort",
        "outputs": list(answer.get("output_ids") or ()),
        "prompt": meta.get("prompt_tokens"),
        "cached": meta.get("cached_tokens") or 0,
        **{tier: split.get(tier, 0) for tier in ("device", "host", "storage")},
    }

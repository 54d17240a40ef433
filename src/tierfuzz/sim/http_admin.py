"""Endpoints that change a worker: flush, abort, storage, hold and release (reference 2, 2.3, 6.4)."""

from __future__ import annotations

import asyncio
from typing import Any, Literal, TypeVar, get_args

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tierfuzz.errors import UsageError
from tierfuzz.program import WRITE_POLICIES, WritePolicy
from tierfuzz.sim.asgi import Refused, json_response, text_response
from tierfuzz.sim.config import PrefetchPolicy, parse_storage_options
from tierfuzz.sim.loop import Stopping
from tierfuzz.sim.serving import STOPPING, Call, Serving
from tierfuzz.sim.state import SimWorker

HEALTH_RID = "HEALTH_CHECK"
Body = TypeVar("Body")


class AbortBody(msgspec.Struct):
    """/abort_request."""

    rid: str = ""
    abort_all: bool = False


class AttachBody(msgspec.Struct):
    """PUT /hicache/storage-backend; policies are checked later, after the worker was found idle."""

    hicache_storage_backend: str | None = None
    hicache_storage_backend_extra_config_json: str | None = None
    hicache_storage_prefetch_policy: str | None = None
    hicache_write_policy: str | None = None


class ControlBody(msgspec.Struct, forbid_unknown_fields=True):
    """/sim/control: our own endpoint."""

    copies: Literal["hold", "release"]


class AdminEndpoints:
    """Handlers of one worker."""

    def __init__(self, worker: SimWorker) -> None:
        self._worker = worker
        self._serving = Serving(worker)

    # cache and requests ----------------------------------------------------------------------------
    async def flush(self, request: Request) -> Response:
        """/flush_cache?timeout=s: 200 once empty, 400 when not idle in time or while another flush waits."""
        self._admit(request, needs_key=False)
        text = request.query_params.get("timeout", "0")
        try:
            timeout = float(text)
        except ValueError:
            timeout = -1.0
        if not 0 <= timeout < float("inf"):
            raise Refused(f"timeout {text!r}: expected seconds, 0 or more")
        try:
            flushes = [rank.scheduler.flush(timeout) for rank in self._worker.ranks]
            flushed, *_ = await asyncio.gather(*flushes)  # the answer is that of rank 0 only (2.3)
        except Stopping:
            raise Refused(STOPPING, 503) from None
        if flushed:
            return text_response("Cache flushed.")
        raise Refused("Cache not flushed: requests or copies are under way, or another flush is waiting.")

    async def abort(self, request: Request) -> Response:
        """/abort_request: 200 also for names that nobody knows."""
        body = await _body(request, AbortBody)
        if body.abort_all:
            for rank in self._worker.ranks:
                rank.scheduler.abort_all()
        else:
            for rank in self._worker.ranks:
                rank.scheduler.abort(body.rid)
        return Response(status_code=200)

    async def health_generate(self, request: Request) -> Response:
        """/health_generate: one real token, unless busy; with pages of 1 or 2 tokens it is cached."""
        if self._worker.idle:
            call = Call((0,), 1, rid=f"{HEALTH_RID}_{self._worker.clock.monotonic()}")
            await self._serving.serve([self._serving.request(call)], request.receive)
        return Response(status_code=200)

    async def control(self, request: Request) -> Response:
        """POST /sim/control {"copies": "hold" | "release"}: whether copies between tiers may land."""
        body = await _body(request, ControlBody)
        for rank in self._worker.ranks:
            (rank.scheduler.hold if body.copies == "hold" else rank.scheduler.release)()
        pending = sum(len(rank.engine.copies) for rank in self._worker.ranks)
        return json_response({"copies": body.copies, "pending": pending})

    # storage at run time ---------------------------------------------------------------------------
    async def storage(self, request: Request) -> Response:
        """GET /hicache/storage-backend: the four values in force."""
        self._admit(request, needs_key=True)
        worker = self._worker
        found: dict[str, Any] = {
            "hicache_storage_backend": worker.storage_backend,
            "hicache_storage_backend_extra_config": worker.storage_extra,
            "hicache_storage_prefetch_policy": worker.storage_policy,
            "hicache_write_policy": worker.policy,
        }
        return json_response(found)

    async def attach(self, request: Request) -> Response:
        """PUT /hicache/storage-backend: idle is checked first, then the policies, before anything changes."""
        self._admit(request, needs_key=True)
        body = await _body(request, AttachBody)
        self._need_idle("attach")
        prefetch = _known("hicache_storage_prefetch_policy", body.hicache_storage_prefetch_policy, _PREFETCH)
        policy = _known("hicache_write_policy", body.hicache_write_policy, WRITE_POLICIES)
        self._refuse_change(body.hicache_storage_backend, policy)
        worker = self._worker
        extra = body.hicache_storage_backend_extra_config_json
        extra = extra if extra is not None else worker.storage_extra
        try:
            threshold = parse_storage_options(extra).prefetch_threshold
        except UsageError as error:
            raise Refused(str(error)) from error
        backend = body.hicache_storage_backend
        worker.attach(policy or worker.policy, backend, prefetch or worker.storage_policy, extra, threshold)
        return text_response("HiCache storage backend attached.")

    def _refuse_change(self, backend: str | None, policy: WritePolicy | None) -> None:
        worker = self._worker
        if backend != "file":
            raise Refused(f"Failed to attach: backend {backend!r}; the simulated worker knows 'file' only")
        if worker.storage_backend not in (None, backend):
            raise Refused(f"Failed to attach: {worker.storage_backend!r} is attached; detach it first")
        leaves_gaps = worker.policy == "write_back" and policy not in (None, "write_back")
        if leaves_gaps and worker.engine.rules.unified and _has_host_gaps(worker):
            raise Refused("Failed to attach: pages on device lack host copies, so write_back cannot be left")

    async def detach(self, request: Request) -> Response:
        """DELETE /hicache/storage-backend: idle only; fine when nothing is attached."""
        self._admit(request, needs_key=True)
        self._need_idle("detach")
        worker = self._worker
        worker.attach(worker.policy, None, worker.storage_policy, worker.storage_extra, 0)
        return text_response("HiCache storage backend detached.")

    async def clear_storage(self, request: Request) -> Response:
        """POST /hicache/storage-backend/clear: always 200, whether there was one or not (defect B12)."""
        self._admit(request, needs_key=False)
        self._worker.engine.cache.storage.clear()
        return text_response("Hierarchical cache storage backend cleared.")

    # checks ----------------------------------------------------------------------------------------
    def _admit(self, request: Request, needs_key: bool) -> None:
        """The admin key, where one is set; some endpoints do not exist without one."""
        key = self._worker.options.admin_api_key
        if key is None and needs_key:
            raise Refused("this endpoint needs a worker started with --admin-api-key")
        if key is not None and request.headers.get("authorization") != f"Bearer {key}":
            raise Refused("expected the header Authorization: Bearer ADMIN_API_KEY", 401)

    def _need_idle(self, what: str) -> None:
        if not self._worker.idle:
            levels = [rank.engine.gauges() for rank in self._worker.ranks]
            raise Refused(
                f"Reject {what}: scheduler is not idle. #queue-req={sum(one.waiting for one in levels)} "
                f"#running-req={sum(one.running for one in levels)} "
                f"#pending-copies={sum(one.pending_copies for one in levels)}"
            )


_PREFETCH: tuple[PrefetchPolicy, ...] = get_args(PrefetchPolicy)
_Name = TypeVar("_Name", bound=str)


def _known(key: str, value: str | None, names: tuple[_Name, ...]) -> _Name | None:
    if value is None:
        return None
    for name in names:
        if name == value:
            return name
    raise Refused(f"Invalid {key}: {value!r}. Expected one of {list(names)}.")


def _has_host_gaps(worker: SimWorker) -> bool:
    return any(n.device is not None and n.host is None for n in worker.engine.cache.tree.nodes())


async def _body(request: Request, kind: type[Body]) -> Body:
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except msgspec.DecodeError as error:
        raise Refused(f"bad request body: {error}") from error

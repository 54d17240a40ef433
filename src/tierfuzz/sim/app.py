"""The ASGI application: routes of one simulated worker, without middleware."""

from __future__ import annotations

from starlette.routing import BaseRoute, Route, Router

from tierfuzz.sim.asgi import Handler, refusable
from tierfuzz.sim.http_admin import AdminEndpoints
from tierfuzz.sim.http_generate import Generate
from tierfuzz.sim.http_info import InfoEndpoints
from tierfuzz.sim.http_openai import OpenAi
from tierfuzz.sim.state import SimWorker


def build_app(worker: SimWorker) -> Router:
    """Routes in the order of their use: each request walks them from the top."""
    openai = OpenAi(worker)
    routes: list[BaseRoute] = [
        Route("/generate", Generate(worker).endpoint(), methods=["POST", "PUT"]),
        Route("/v1/completions", openai.completions(), methods=["POST"]),
        Route("/v1/chat/completions", openai.chat(), methods=["POST"]),
        *_admin_routes(AdminEndpoints(worker)),
        *_info_routes(InfoEndpoints(worker), worker.options.metrics),
    ]
    return Router(routes)


def _admin_routes(admin: AdminEndpoints) -> list[BaseRoute]:
    return [
        _route("/flush_cache", admin.flush, "GET", "POST"),
        _route("/hicache/storage-backend", admin.attach, "PUT"),
        _route("/hicache/storage-backend", admin.storage, "GET"),
        _route("/hicache/storage-backend", admin.detach, "DELETE"),
        _route("/hicache/storage-backend/clear", admin.clear_storage, "POST"),
        _route("/clear_hicache_storage_backend", admin.clear_storage, "GET", "POST"),
        _route("/abort_request", admin.abort, "POST"),
        _route("/sim/control", admin.control, "POST"),
        _route("/health_generate", admin.health_generate, "GET"),
    ]


def _info_routes(info: InfoEndpoints, metrics: bool) -> list[BaseRoute]:
    routes: list[BaseRoute] = [
        _route("/health", info.health, "GET"),
        _route("/server_info", info.server_info, "GET"),
        _route("/get_server_info", info.server_info, "GET"),
        _route("/v1/loads", info.loads, "GET"),
        _route("/v1/models", info.models, "GET"),
        _route("/model_info", info.model_info, "GET"),
        _route("/get_model_info", info.model_info, "GET"),
    ]
    return [*routes, _route("/metrics", info.metrics, "GET")] if metrics else routes


def _route(path: str, handler: Handler, *methods: str) -> Route:
    return Route(path, refusable(handler), methods=list(methods))

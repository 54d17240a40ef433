"""Dynamo's production path in one process: a KvEventPublisher and a KvRouter for each source.

One process has one identity in Dynamo, so every source has an endpoint, a model and a router of its own, and
the choice between sources is made by the overlaps that their routers find.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tierfuzz.routers.dynamo_loop import dynamo_core
from tierfuzz.routers.tokenizers import write_tokenizer


@dataclass
class Source:
    """What stands for one rank of a worker."""

    model: str
    rank: int
    router: Any
    publisher: Any
    serving: asyncio.Task[Any]


class RouterHouse:
    """See the module. Discovery in memory, requests over TCP, events over ZMQ: no service is needed."""

    def __init__(self) -> None:
        self._core = dynamo_core()
        loop = asyncio.get_running_loop()
        self._runtime = self._core.DistributedRuntime(loop, "mem", "tcp", event_plane="zmq")
        self._sources: dict[int, Source] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="tierfuzz-dynamo-")
        write_tokenizer(Path(self._folder.name))

    async def add(self, number: int, model: str, rank: int, size: int, events: str, replay: str) -> None:
        """A worker without an engine, its publisher, and a router. Replays are never asked for here."""
        del replay
        core = self._core
        endpoint = self._runtime.endpoint(f"tierfuzz.source{number}.generate")
        serving = asyncio.ensure_future(endpoint.serve_endpoint(_nothing))
        config = core.ModelRuntimeConfig()
        config.data_parallel_start_rank, config.data_parallel_size = rank, 1
        await core.register_model(
            core.ModelInput.Tokens,
            core.ModelType.Chat | core.ModelType.Completions,
            endpoint,
            self._folder.name,
            f"{model}-{number}",
            worker_type=core.WorkerType.Aggregated,
            kv_cache_block_size=size,
            runtime_config=config,
        )
        router = core.KvRouter(endpoint, size, core.KvRouterConfig())
        publisher = core.KvEventPublisher(
            endpoint,
            kv_block_size=size,
            dp_rank=rank,
            enable_local_indexer=True,
            zmq_endpoint=events,
            zmq_topic="",
        )
        self._sources[number] = Source(model, rank, router, publisher, serving)

    async def remove(self, number: int, model: str) -> None:
        """Nothing of it is asked any more."""
        del model
        source = self._sources.pop(number)
        source.publisher.shutdown()
        source.serving.cancel()

    def _of(self, model: str) -> list[tuple[int, Source]]:
        return [(number, source) for number, source in self._sources.items() if source.model == model]

    async def dump(self, model: str) -> list[dict[str, Any]]:
        """Events of all sources, with our numbers in place of Dynamo's."""
        events: list[dict[str, Any]] = []
        for number, source in self._of(model):
            dumped = json.loads(await source.router.dump_events())
            events += [{**event, "worker_id": number} for event in dumped]
        return events

    async def device(self, model: str, tokens: Sequence[int], namespace: str) -> list[tuple[int, int, int]]:
        """Leading device pages, by number and rank."""
        del namespace
        rows = []
        for number, source in self._of(model):
            answer = await source.router.get_overlap_scores(list(tokens))
            rows += [(number, row["dp_rank"], row["device_blocks"]) for row in answer["workers"]]
        return rows

    async def best(self, model: str, tokens: Sequence[int], namespace: str) -> int:
        """The source whose router finds the longest overlap."""
        del namespace
        found = [
            ((await source.router.best_worker(list(tokens)))[2], -number)
            for number, source in self._of(model)
        ]
        return -max(found)[1]

    async def end(self) -> None:
        """Leave nothing behind."""
        self._folder.cleanup()


async def _nothing(request: Any, context: Any = None) -> AsyncIterator[dict[str, Any]]:
    """No request is ever sent."""
    del request, context
    yield {}

"""Dynamo's standalone indexer: a process that is asked over HTTP, in the network namespace of this one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

import httpx

PORT = 8090  # the network is private
READY_S = 30.0
WAIT_S = 0.02
GROUP = "default"


class IndexerHouse:
    """Commands to requests; see tierfuzz.routers.dynamo_house."""

    def __init__(self, process: asyncio.subprocess.Process, threads: int) -> None:
        self._process, self.threads = process, threads
        self._http = httpx.AsyncClient(base_url=f"http://127.0.0.1:{PORT}", timeout=READY_S, trust_env=False)
        self._sizes: dict[str, int] = {}

    @staticmethod
    async def started(threads: int = 4) -> IndexerHouse:
        """A running indexer."""
        command = (sys.executable, "-m", "dynamo.indexer", "--port", str(PORT), "--threads", str(threads))
        quiet = asyncio.subprocess.DEVNULL
        house = IndexerHouse(await asyncio.create_subprocess_exec(*command, stdin=quiet), threads)
        for _ in range(int(READY_S / WAIT_S)):
            try:
                if (await house._http.get("/health")).status_code == 200:
                    return house
            except httpx.TransportError:
                await asyncio.sleep(WAIT_S)
        raise TimeoutError(f"dynamo.indexer did not listen within {READY_S:g} s")

    async def _post(self, path: str, **fields: Any) -> Any:
        answer = await self._http.post(path, json=fields)
        if answer.is_error:
            raise ValueError(f"{path}: status {answer.status_code}: {answer.text[:200]}")
        return answer.json()

    async def add(self, number: int, model: str, rank: int, size: int, events: str, replay: str) -> None:
        """Register one instance with one rank."""
        self._sizes[model] = size
        await self._post(
            "/register",
            instance_id=number,
            endpoint=events,
            model_name=model,
            block_size=size,
            dp_rank=rank,
            replay_endpoint=replay,
        )

    async def remove(self, number: int, model: str) -> None:
        """Unregister it."""
        await self._post("/unregister", instance_id=number, model_name=model)

    async def dump(self, model: str) -> list[dict[str, Any]]:
        """The tree of this model."""
        dumped = (await self._http.get("/dump")).json()
        events: list[dict[str, Any]] = dumped.get(f"{model}:{GROUP}", {}).get("events", [])
        return events

    async def device(self, model: str, tokens: Sequence[int], namespace: str) -> list[tuple[int, int, int]]:
        """Leading device pages, by instance and rank; it counts in tokens."""
        scores = await self._scores(model, tokens, namespace)
        size = self._sizes[model]
        return [(int(n), int(r), at // size) for n, ranks in scores.items() for r, at in ranks.items()]

    async def best(self, model: str, tokens: Sequence[int], namespace: str) -> int:
        """It chooses nobody: this is the highest score, of equals the lowest number; 0: none."""
        instances = (await self._query(model, tokens, namespace))["instances"]
        found = [(one["longest_matched"], -int(number)) for number, one in instances.items()]
        return -max(found, default=(0, 0))[1]

    async def _scores(self, model: str, tokens: Sequence[int], namespace: str) -> dict[str, dict[str, int]]:
        scores: dict[str, dict[str, int]] = (await self._query(model, tokens, namespace))["scores"]
        return scores

    async def _query(self, model: str, tokens: Sequence[int], namespace: str) -> dict[str, Any]:
        fields = {"cache_salt": namespace} if namespace else {}
        answer: dict[str, Any] = await self._post(
            "/query", model_name=model, token_ids=list(tokens), **fields
        )
        return answer

    async def end(self) -> None:
        """End the indexer."""
        self._process.kill()
        await self._process.wait()

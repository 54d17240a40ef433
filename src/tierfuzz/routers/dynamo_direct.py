"""Dynamo's direct path in this process: a SelectionService with a subscriber of its own for each rank.

One service serves all streams: every model name has a tree of its own (reference, section 2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from tierfuzz.routers.base import Channel
from tierfuzz.routers.dynamo import NOBODY, Dynamo
from tierfuzz.routers.dynamo_loop import dynamo_core, dynamo_loop

GROUP = "default"  # of models whose registration names none


@cache
def _service() -> Any:
    return dynamo_loop().call(lambda: dynamo_core().SelectionService(indexer_threads=1))


def _call(name: str, *given: Any) -> Any:
    method = getattr(_service(), name)
    return dynamo_loop().call(lambda: method(*given))


class DynamoDirect(Dynamo):
    """SelectionService: `overlap_scores`, `indexer_snapshot`, `select`."""

    name = "dynamo-direct"

    def add(self, number: int, rank: int, channel: Channel) -> None:
        """Register one worker with its endpoints."""
        worker = {
            "worker_id": number,
            "model_name": self.model,
            "endpoint": NOBODY,
            "block_size": channel.page_size,
            "kv_events_endpoints": {rank: channel.publisher.endpoint},
            "replay_endpoint": channel.publisher.replay_endpoint,
            "data_parallel_start_rank": rank,
            "data_parallel_size": 1,
            "max_num_batched_tokens": 8192,
        }
        _call("upsert_worker", worker)

    def remove(self, number: int) -> None:
        """Delete one worker, and its listener."""
        _call("delete_worker", number)

    def dump(self) -> Sequence[Mapping[str, Any]]:
        """The snapshot of this model."""
        events: Sequence[Mapping[str, Any]] = (
            _call("indexer_snapshot").get(f"{self.model}:{GROUP}", {}).get("events", ())
        )
        return events

    def device_pages(self, tokens: Sequence[int], namespace: str) -> dict[tuple[int, int], int]:
        """As overlap_scores counts them."""
        answer = _call("overlap_scores", self._request(tokens, namespace))
        return {(row["worker_id"], row["dp_rank"]): row["device_blocks"] for row in answer["workers"]}

    def best(self, tokens: Sequence[int], namespace: str) -> int:
        """As select chooses."""
        return int(_call("select", self._request(tokens, namespace))["worker_id"])

    def _request(self, tokens: Sequence[int], namespace: str) -> dict[str, Any]:
        request = {"model_name": self.model, "token_ids": list(tokens)}
        return {**request, "cache_salt": namespace} if namespace else request

"""Looks at a running worker: asks it, sends one short prompt twice, listens. Changes nothing else."""

from __future__ import annotations

import os

from tierfuzz.clock import Clock
from tierfuzz.engines.discovery import Endpoints, endpoints_of
from tierfuzz.errors import RequestFailed
from tierfuzz.events import Batch
from tierfuzz.hashing import page_hashes
from tierfuzz.preflight.seen import Seen, stored_on_device
from tierfuzz.prompts import Piece, tokens_of
from tierfuzz.worker.http import Answer, Call, WorkerClient
from tierfuzz.worker.rest import settle
from tierfuzz.worker.subscriber import EventSubscriber

ASK_BOUND_S = 10.0
REQUEST_BOUND_S = 120.0  # the first request of a worker may compile kernels
REST_BOUND_S = 10.0
HEAR_BOUND_S = 2.0
CONFIRMATIONS = 2
PAGES = 2


def examine(url: str, events: str, replay: str, clock: Clock, key: str | None = None) -> Seen:
    """Everything that a preflight can see; `events`, `replay`: endpoints, "" to go by the worker's word."""
    client = WorkerClient(url, clock, key, REQUEST_BOUND_S)
    try:
        info = client.server_info(ASK_BOUND_S)
        where = endpoints_of(info, client.base_url, events, replay)
        return _look(client, info, where, clock)
    except RequestFailed as error:
        return Seen(url, error=str(error))
    finally:
        client.close()


def _look(client: WorkerClient, info: dict[str, object], where: Endpoints, clock: Clock) -> Seen:
    healthy = client.healthy(ASK_BOUND_S)
    tokens = _fresh_tokens(info, clock)
    if not where.events:
        return Seen(client.base_url, "", info, healthy, where, answers=_ask(client, tokens))
    subscriber = EventSubscriber(where.events, where.replay or None, clock, where.topic, where.bind)
    try:
        replayed = subscriber.sync(ASK_BOUND_S)
        subscriber.drain()
        answers = _ask(client, tokens)
        rest = settle(client, subscriber, clock, REST_BOUND_S, CONFIRMATIONS)
        blocks = page_hashes(tokens, _page(info))
        batches = _hear(subscriber, blocks, clock)
        return Seen(
            url=client.base_url,
            info=info,
            healthy=healthy,
            endpoints=where,
            blocks=blocks,
            answers=answers,
            batches=tuple(batches),
            live=subscriber.counts["messages"],
            replayed=replayed,
            idle=client.idle(ASK_BOUND_S),
            at_rest=rest.at_rest,
            unrest=rest.reason,
        )
    finally:
        subscriber.close()


def _hear(subscriber: EventSubscriber, blocks: tuple[int, ...], clock: Clock) -> list[Batch]:
    """What has come; live messages may be a moment behind the replay."""
    batches = subscriber.drain()
    deadline = clock.monotonic() + HEAR_BOUND_S
    while clock.monotonic() < deadline:
        if subscriber.counts["messages"] and stored_on_device(batches).issuperset(blocks):
            break
        clock.sleep(0.02)
        batches += subscriber.drain()
    return batches


def _page(info: dict[str, object]) -> int:
    page = info.get("page_size")
    return page if isinstance(page, int) and page > 0 else 1


def _fresh_tokens(info: dict[str, object], clock: Clock) -> tuple[int, ...]:
    """A prompt that nobody has sent before."""
    return tokens_of((Piece(f"doctor-{os.getpid()}-{clock.wall()!r}", 0, PAGES * _page(info) + 1),))


def _ask(client: WorkerClient, tokens: tuple[int, ...]) -> tuple[Answer, ...]:
    """The same prompt twice, and nothing more after a failure."""
    first = client.generate(Call("tierfuzz-doctor-1", tokens, 1))
    if first.status != "ok":
        return (first,)
    return (first, client.generate(Call("tierfuzz-doctor-2", tokens, 1)))

"""From a call to the engine and back: checks, submission, streams, clients that hang up."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from types import TracebackType

from starlette.types import Receive

from tierfuzz.model.request import Reply, Request
from tierfuzz.sim.asgi import Refused
from tierfuzz.sim.loop import Scheduler, Stopping
from tierfuzz.sim.state import SimWorker

HANG_UP_CHECK_S = 0.5  # shorter requests are not watched: most of them never need it
STOPPING = "the worker is shutting down"


@dataclass(frozen=True)
class Call:
    """One prompt to serve. `max_new` None: as many outputs as the pool has room for."""

    tokens: tuple[int, ...]
    max_new: int | None
    namespace: str = ""
    logprob_start: int | None = None
    forced: tuple[int, ...] | None = None
    rid: str | None = None


@dataclass(frozen=True)
class Served:
    """What came of a call; `seconds` is the time in the worker. `partial`: more outputs follow (streams)."""

    reply: Reply
    requested: int
    seconds: float
    partial: bool = False


class Serving:
    """Serves calls on one worker."""

    def __init__(self, worker: SimWorker) -> None:
        self._worker = worker
        self._turn = itertools.cycle(worker.ranks)

    def request(self, call: Call) -> Request:
        """The engine's request; Refused for one that it could never serve."""
        length, limit = len(call.tokens), self._worker.options.max_input_tokens
        if not length:
            raise Refused("the prompt is empty; expected at least one token")
        if length >= limit:
            raise Refused(f"prompt of {length} tokens: expected fewer than {limit}; shorten it")
        if call.logprob_start is not None and call.logprob_start > length:
            raise Refused(f"logprob_start_len {call.logprob_start}: the prompt has {length} tokens only")
        rid = call.rid or uuid.uuid4().hex
        if any(rank.scheduler.knows(rid) for rank in self._worker.ranks):
            raise Refused(f"rid {rid!r} is being served already; choose another")
        max_new = call.max_new if call.max_new is not None else self._room(length)
        request = Request(rid, call.tokens, max_new, call.namespace, call.logprob_start, call.forced)
        if refusal := self._worker.engine.refusal(request):
            raise Refused(refusal)
        return request

    def _room(self, length: int) -> int:
        config = self._worker.engine.config
        return max(0, config.device_tokens - config.page_size - length - 1)

    def scheduler(self, rank: int | None) -> Scheduler:
        """That of a rank, or of the next one in turn; Refused for a rank that there is not."""
        if rank is None:
            return next(self._turn).scheduler
        if not 0 <= rank < len(self._worker.ranks):
            raise Refused(f"rank {rank}: the worker has ranks 0 to {len(self._worker.ranks) - 1}")
        return self._worker.ranks[rank].scheduler

    async def serve(self, requests: list[Request], receive: Receive, rank: int | None = None) -> list[Served]:
        """Serve requests of one call side by side on one rank; Refused while shutting down."""
        start, scheduler = self._worker.clock.monotonic(), self.scheduler(rank)
        try:
            futures = [scheduler.submit(request) for request in requests]
            with HangUpWatch(receive, scheduler.abort, requests):
                replies = [await future for future in futures]
        except Stopping:
            raise Refused(STOPPING, 503) from None
        seconds = self._worker.clock.monotonic() - start
        return [Served(r, q.max_new, seconds) for r, q in zip(replies, requests, strict=True)]

    async def stream(
        self, request: Request, receive: Receive, rank: int | None = None
    ) -> AsyncIterator[Served]:
        """Partial replies as outputs appear, the last one complete."""
        start, scheduler = self._worker.clock.monotonic(), self.scheduler(rank)
        partials: asyncio.Queue[Reply | None] = asyncio.Queue()
        try:
            future = scheduler.submit(request, partials.put_nowait)
            future.add_done_callback(lambda _: partials.put_nowait(None))
            with HangUpWatch(receive, scheduler.abort, [request]):
                while (partial := await partials.get()) is not None:
                    seconds = self._worker.clock.monotonic() - start
                    yield Served(partial, request.max_new, seconds, partial=True)
                reply = await future
        except Stopping:
            raise Refused(STOPPING, 503) from None
        yield Served(reply, request.max_new, self._worker.clock.monotonic() - start)


class HangUpWatch:
    """Aborts requests whose client closed the connection; looks only at those that take a while."""

    def __init__(self, receive: Receive, abort: Callable[[str], None], requests: list[Request]) -> None:
        self._receive = receive
        self._abort = abort
        self._requests = requests
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        """Begin to watch, later."""
        self._timer = asyncio.get_running_loop().call_later(HANG_UP_CHECK_S, self._start)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop watching."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        for request in self._requests:
            self._abort(request.rid)

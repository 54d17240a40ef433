"""The scheduler task: ticks the step model while there is work, and takes what clients ask between ticks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tierfuzz.model.engine import Engine
from tierfuzz.model.request import Reply, Request
from tierfuzz.sim.gate import CopyGate
from tierfuzz.sim.publisher import Publisher

Progress = Callable[[Reply], None]


LEAST_WAIT_S = 0.001  # a tick that did nothing will do nothing at once: an ill engine must not spin


class Stopping(Exception):
    """The worker is shutting down; what was asked will not be answered."""


@dataclass
class _Deferred:
    """A flush that waits for the engine to be idle."""

    done: asyncio.Future[bool]
    timer: asyncio.TimerHandle


class Scheduler:
    """One engine, one task: the engine changes only inside it, so a failure of the engine always ends it."""

    def __init__(
        self, engine: Engine, gate: CopyGate, publisher: Publisher | None, step_delay_s: float = 0.0
    ) -> None:
        self.engine = engine
        self.gate = gate
        self.decoded_tokens = 0
        self._publisher = publisher
        self._step_delay = step_delay_s
        self._wake = asyncio.Event()
        self._calls: list[Callable[[], None]] = []
        self._replies: dict[str, asyncio.Future[Reply]] = {}
        self._progress: dict[str, tuple[Progress, int]] = {}
        self._flushes: set[asyncio.Future[bool]] = set()
        self._deferred: _Deferred | None = None
        self._stopping = False

    @property
    def idle(self) -> bool:
        """Nothing asked, waiting, running, being copied, or to be published."""
        return not self._calls and self.engine.idle

    # what clients ask ------------------------------------------------------------------------------
    def submit(self, request: Request, progress: Progress | None = None) -> asyncio.Future[Reply]:
        """Queue a request. `progress` gets a partial reply after each tick that brought new outputs."""
        if self._stopping:
            raise Stopping
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._replies[request.rid] = future
        if progress is not None:
            self._progress[request.rid] = (progress, 0)
        self._post(partial(self.engine.submit, request))
        return future

    def knows(self, rid: str) -> bool:
        """True while a request of this name is being served."""
        return rid in self._replies

    def abort(self, rid: str) -> None:
        """Abort one request; unknown names are ignored, as the engine does."""
        self._post(partial(self.engine.abort, rid))

    def abort_all(self) -> None:
        """Abort everything that waits or runs."""
        for rid in list(self._replies):
            self.abort(rid)

    async def flush(self, timeout_s: float) -> bool:
        """Empty the cache once fully idle, within `timeout_s`; False also while another flush waits (2.3)."""
        if self._stopping:
            raise Stopping
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._flushes.add(done)
        done.add_done_callback(self._flushes.discard)
        self._post(partial(self._ask_flush, done, timeout_s))
        return await done

    def hold(self) -> None:
        """Copies between tiers stop landing."""
        self.gate.held = True

    def release(self) -> None:
        """Held copies may land again."""
        self.gate.held = False
        self._wake.set()

    def stop(self) -> None:
        """Answer nothing more: whatever is open fails with Stopping."""
        self._stopping = True
        waiting: list[asyncio.Future[Any]] = [*self._replies.values(), *self._flushes]
        for future in waiting:
            if not future.done():
                future.set_exception(Stopping())
        self._replies.clear()
        self._progress.clear()

    def _post(self, call: Callable[[], None]) -> None:
        self._calls.append(call)
        self._wake.set()

    # flush -----------------------------------------------------------------------------------------
    def _ask_flush(self, done: asyncio.Future[bool], timeout_s: float) -> None:
        if self._deferred is not None:
            done.set_result(False)
        elif self._flush_now():
            done.set_result(True)
        elif timeout_s <= 0:
            done.set_result(False)
        else:
            timer = asyncio.get_running_loop().call_later(timeout_s, self._end_deferred, False)
            self._deferred = _Deferred(done, timer)

    def _flush_now(self) -> bool:
        if not self.engine.flush():
            return False
        self._tick()  # the clear is on the wire before the answer
        return True

    def _end_deferred(self, ok: bool) -> None:
        deferred, self._deferred = self._deferred, None
        if deferred is not None:
            deferred.timer.cancel()
            if not deferred.done.done():
                deferred.done.set_result(ok)

    # the loop --------------------------------------------------------------------------------------
    async def run(self) -> None:
        """Tick for ever; an exception of the engine ends it, as it ends the real process."""
        while True:
            calls, self._calls = self._calls, []
            for call in calls:
                call()
            if self._deferred is not None and self._flush_now():
                self._end_deferred(True)
            if not self.engine.has_work:
                await self._sleep(None)
            elif self._tick():
                await asyncio.sleep(self._step_delay if self._step_delay and self.engine.live() else 0)
            else:
                wait_s = self.gate.wait_s(self.engine.copies.pending)
                await self._sleep(None if wait_s is None else max(wait_s, LEAST_WAIT_S))

    def _tick(self) -> bool:
        """One iteration; False when the next one would do nothing new until a copy lands or someone calls."""
        result = self.engine.tick()
        self.gate.issued(self.engine.copies.pending)
        if self._publisher is not None:
            for batch in result.batches:
                self._publisher.publish(batch)
        if self._progress:
            self._report_progress()
        for reply in result.replies:
            self._answer(reply)
        return result.progress

    def _answer(self, reply: Reply) -> None:
        self._progress.pop(reply.rid, None)
        self.decoded_tokens += len(reply.output_ids)
        future = self._replies.pop(reply.rid, None)
        if future is not None and not future.done():
            future.set_result(reply)

    def _report_progress(self) -> None:
        for active in self.engine.live():
            rid, outputs = active.request.rid, len(active.reported)
            progress, known = self._progress.get(rid, (None, 0))
            if progress is not None and outputs > known:
                self._progress[rid] = (progress, outputs)
                ids, length = tuple(active.reported), len(active.request.tokens)
                progress(Reply(rid, ids, length, active.cached, active.split, "length"))

    async def _sleep(self, seconds: float | None) -> None:
        """Until someone calls, or `seconds` have passed."""
        if seconds is None:
            await self._wake.wait()
        else:
            handle = asyncio.get_running_loop().call_later(seconds, self._wake.set)
            await self._wake.wait()
            handle.cancel()
        self._wake.clear()

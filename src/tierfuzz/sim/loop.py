"""The scheduler task: ticks the step model while there is work, and lets requests in between ticks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from tierfuzz.clock import Clock
from tierfuzz.model.engine import Engine
from tierfuzz.model.request import Reply, Request
from tierfuzz.sim.gate import CopyGate
from tierfuzz.sim.publisher import Publisher

Progress = Callable[[Reply], None]


class Stopping(Exception):
    """The worker is shutting down; what was asked will not be answered."""


@dataclass
class _Flush:
    done: asyncio.Future[bool]
    timer: asyncio.TimerHandle


class Scheduler:
    """One engine, one task. Everything else talks to the engine through this, between two ticks."""

    def __init__(
        self,
        engine: Engine,
        gate: CopyGate,
        publisher: Publisher | None,
        clock: Clock,
        step_delay_s: float = 0.0,
    ) -> None:
        self.engine = engine
        self.gate = gate
        self.decoded_tokens = 0
        self._publisher = publisher
        self._clock = clock
        self._step_delay = step_delay_s
        self._wake = asyncio.Event()
        self._replies: dict[str, asyncio.Future[Reply]] = {}
        self._progress: dict[str, tuple[Progress, int]] = {}
        self._flush: _Flush | None = None
        self._stopping = False

    # requests --------------------------------------------------------------------------------------
    def submit(self, request: Request, progress: Progress | None = None) -> asyncio.Future[Reply]:
        """Queue a request. `progress` gets a partial reply after each tick that brought new outputs."""
        if self._stopping:
            raise Stopping
        self.engine.submit(request)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._replies[request.rid] = future
        if progress is not None:
            self._progress[request.rid] = (progress, 0)
        self._wake.set()
        return future

    def knows(self, rid: str) -> bool:
        """True while a request of this name is being served."""
        return rid in self._replies

    def abort(self, rid: str) -> None:
        """Abort one request; unknown names are ignored, as the engine does."""
        self.engine.abort(rid)
        self._wake.set()

    def abort_all(self) -> None:
        """Abort everything that waits or runs."""
        for rid in list(self._replies):
            self.abort(rid)

    # control ---------------------------------------------------------------------------------------
    async def flush(self, timeout_s: float) -> bool:
        """Empty the cache once fully idle, within `timeout_s`; False also while another flush waits (2.3)."""
        if self._flush is not None:
            return False
        if self._flush_now():
            return True
        if timeout_s <= 0:
            return False
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bool] = loop.create_future()
        self._flush = _Flush(done, loop.call_later(timeout_s, self._flush_ends, False))
        return await done

    def _flush_now(self) -> bool:
        if not self.engine.flush():
            return False
        self._tick()  # the clear is on the wire before the answer
        return True

    def _flush_ends(self, ok: bool) -> None:
        flush, self._flush = self._flush, None
        if flush is not None:
            flush.timer.cancel()
            if not flush.done.done():
                flush.done.set_result(ok)

    def hold(self) -> None:
        """Copies between tiers stop landing."""
        self.gate.held = True

    def release(self) -> None:
        """Held copies may land again."""
        self.gate.held = False
        self._wake.set()

    def stop(self) -> None:
        """Answer nothing more: every open request fails with Stopping."""
        self._stopping = True
        self._flush_ends(False)
        for future in self._replies.values():
            if not future.done():
                future.set_exception(Stopping())
        self._replies.clear()
        self._progress.clear()

    # the loop --------------------------------------------------------------------------------------
    async def run(self) -> None:
        """Tick for ever; an exception of the engine ends it, as it ends the real process."""
        while True:
            if self._flush is not None and self._flush_now():
                self._flush_ends(True)
            if not self.engine.has_work:
                await self._sleep(None)
            elif self._tick():
                await asyncio.sleep(self._step_delay if self._step_delay and self.engine.live() else 0)
            else:
                await self._sleep(self.gate.wait_s(self.engine.copies.pending))

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
                ids, length = tuple(active.reported), active.prompt_length
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

"""The scheduler loop: admission, prefill, decode, results one step late, publish points (3.6, 5.2, 6.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tierfuzz.events import AllBlocksCleared, KvEvent
from tierfuzz.model.admission import Admission
from tierfuzz.model.batch import DecodeBatch, LaunchedBatch, PrefillBatch
from tierfuzz.model.config import EngineConfig, StorageConfig
from tierfuzz.model.copies import Copies
from tierfuzz.model.faults import Fault, install
from tierfuzz.model.request import Active, Gauges, Reply, Request, TickResult
from tierfuzz.model.rules import Rules
from tierfuzz.program import WritePolicy


class Engine(Admission):
    """One worker without clock, sockets or threads: submit, tick, read what came out."""

    def __init__(self, config: EngineConfig, rules: Rules, faults: Sequence[Fault] = ()) -> None:
        super().__init__(config, rules)
        self._last: LaunchedBatch | None = None
        self._batches: list[list[KvEvent]] = []
        self._replies: list[Reply] = []
        self._decode_results = 0
        for fault in faults:
            install(self, fault)

    # what a client asks ----------------------------------------------------------------------------
    def submit(self, request: Request) -> None:
        """Queue a request."""
        self.enqueue(request)

    def abort(self, rid: str) -> None:
        """Abort a request; unknown names are ignored, as the engine does."""
        for active in self.waiting:
            if active.request.rid == rid:
                self.waiting.remove(active)
                self.forget_prefetch(active)
                self._replies.append(self._never_ran(active))
                return
        for active in self.live():
            if active.request.rid == rid:
                active.aborted = True

    def _never_ran(self, active: Active) -> Reply:
        """Aborted while waiting; one that was retracted has run, and says what it had."""
        if active.retractions:
            active.aborted = True
            return self.reply(active)
        return Reply(active.request.rid, (), None, None, None, "abort", "Abort in waiting queue")

    def flush(self) -> bool:
        """Empty device, host and tree; False (and no change) unless fully idle (2.3)."""
        if not self.quiescent:
            return False
        self.clear_cache()
        self._decode_results = 0
        return True

    def clear_cache(self) -> None:
        """The flush itself, published at once with whatever was queued before (3.6 d)."""
        self.cache.clear()
        self.publish()

    def reconfigure(self, policy: WritePolicy, storage: StorageConfig | None) -> None:
        """Change write policy and storage at run time; the caller has checked that the engine is idle."""
        self.config = self.cache.config = replace(self.config, policy=policy, storage=storage)

    def refusal(self, request: Request) -> str:
        """Why a request could never run here, or ""; it would wait for ever otherwise."""
        need = len(request.tokens) + request.max_new + self.config.page_size
        if need < self.config.device_tokens:
            return ""
        return (
            f"the request needs {len(request.tokens)} prompt and {request.max_new} output tokens and a page "
            f"of {self.config.page_size}; the device pool has {self.config.device_tokens} tokens"
        )

    # levels ----------------------------------------------------------------------------------------
    @property
    def quiescent(self) -> bool:
        """Nothing waits, runs or is being copied; events may still be queued."""
        return self._last is None and not self.waiting and not self.live() and not len(self.cache.copies)

    @property
    def idle(self) -> bool:
        """Quiescent, and everything has been published."""
        return self.quiescent and not len(self.cache.outbox) and not self._batches and not self._replies

    @property
    def has_work(self) -> bool:
        """A tick may do something (with copies pending: once they may land)."""
        return not self.idle

    @property
    def copies(self) -> Copies:
        """Copies between tiers that are under way."""
        return self.cache.copies

    @property
    def counters(self) -> Counter[str]:
        """Totals since start."""
        return self.cache.counters

    def gauges(self) -> Gauges:
        """Levels now."""
        cache, size = self.cache, self.config.page_size
        return Gauges(
            host_used=cache.host.used * size,
            host_total=cache.host.capacity * size,
            device_free=cache.device.free * size,
            device_total=cache.device.capacity * size,
            device_evictable=cache.evictable_pages() * size,
            device_locked=cache.locked_pages() * size,
            running=len(self.live()),
            waiting=len(self.waiting),
            pending_copies=len(cache.copies),
        )

    def live(self) -> list[Active]:
        """Requests that have started and not finished."""
        chunked = [self.chunked] if self.chunked is not None else []
        started = [a for a in chunked + self.running + self._launched() if not a.finished]
        return list(dict.fromkeys(started))

    def _launched(self) -> list[Active]:
        return self._last.actives if self._last is not None else []

    # one iteration ---------------------------------------------------------------------------------
    def tick(self) -> TickResult:
        """Schedule and launch one batch, then process the result of the one before (5.2)."""
        pending = len(self.copies)
        batch = self._next_batch()
        ran = batch is not None or self._last is not None or len(self.copies) != pending
        if self._last is not None:
            self._process(self._last)
        elif batch is None:
            self._on_idle()
        self._last = batch
        progress = ran or bool(self._batches) or bool(self._replies)
        result = TickResult(self._batches, self._replies, progress)
        self._batches, self._replies = [], []
        return result

    def _next_batch(self) -> LaunchedBatch | None:
        if not self.rules.unified:
            self.continue_chunked()
            self._merge_prefilled()
            self.poll_copies()
        else:
            self.poll_copies()
            self.continue_chunked()
            self._merge_prefilled()
        return self.next_prefill() or self.next_decode()

    def _merge_prefilled(self) -> None:
        if isinstance(self._last, PrefillBatch):
            done = [a for a in self._last.actives if a is not self._last.chunked and not a.finished]
            self.running += [a for a in done if a not in self.running]

    def poll_copies(self) -> None:
        """Acknowledge the copies that have landed; with `acks_at_end` only once nothing runs."""
        if self.rules.acks_at_end and (self.live() or self.waiting):
            return
        for copy in self.cache.copies.poll():
            self.landed(copy)

    def _on_idle(self) -> None:
        if self.quiescent and len(self.cache.outbox):
            self.publish()

    # results ---------------------------------------------------------------------------------------
    def _process(self, batch: LaunchedBatch) -> None:
        if isinstance(batch, PrefillBatch):
            self._process_prefill(batch)
        else:
            self._process_decode(batch)

    def _process_prefill(self, batch: PrefillBatch) -> None:
        for active in batch.actives:
            if active is not batch.chunked and not active.finished:
                self._take_output(active, first=True)
        if self.rules.chunks_publish or batch.chunked is None:
            self.publish()

    def _process_decode(self, batch: DecodeBatch) -> None:
        discarded = all(active.finished for active in batch.actives)
        for active in batch.actives:
            if not active.finished:
                self._take_output(active, first=False)
        if discarded and not self.rules.counts_discarded:
            return
        self._decode_results += 1
        if self._decode_results % self.config.decode_log_interval == 0:
            self.publish()

    def _take_output(self, active: Active, first: bool) -> None:
        wanted = active.wants_more or (active.aborted and self.rules.aborted_returns_token)
        if wanted:
            active.reported.append(active.sampled[len(active.reported)])
        if active.aborted or not active.wants_more:
            if first and self.rules.lone_insert_for_one and active.request.max_new == 1:
                self.insert_prompt(active)
            self._finish(active)
        elif first:
            self.insert_prompt(active)

    def _finish(self, active: Active) -> None:
        self.insert_finished(active)
        if active in self.running:
            self.running.remove(active)
        self._replies.append(self.reply(active))

    def drop_chunked(self, active: Active) -> None:
        """An aborted chunked request: what was inserted stays, its last chunk does not (5.2)."""
        self.release(active, keep=active.owned_from)
        self._replies.append(self.reply(active))

    def reply(self, active: Active) -> Reply:
        """The answer of a started request."""
        return Reply(
            rid=active.request.rid,
            output_ids=tuple(active.reported),
            prompt_tokens=len(active.request.tokens),
            cached_tokens=active.cached,
            split=active.split,
            finish="abort" if active.aborted else "length",
            abort_message="AbortReq from user" if active.aborted else "",
            retractions=active.retractions,
            state=active.state or 0,
        )

    # publishing ------------------------------------------------------------------------------------
    def publish(self) -> None:
        """A publish point: everything queued leaves as one batch (3.6)."""
        if len(self.cache.outbox):
            self._batches.append(self.outgoing(self.cache.outbox.take()))

    def outgoing(self, events: list[KvEvent]) -> list[KvEvent]:
        """The events of one batch as they leave (a seam for faults of the publisher)."""
        return events


START_EVENTS: tuple[KvEvent, ...] = (AllBlocksCleared(),)

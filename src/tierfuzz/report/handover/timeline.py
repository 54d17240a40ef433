"""timeline.txt: operations, requests, event batches and rest in order of time, and the tiers of pages."""

from __future__ import annotations

from collections.abc import Mapping

from tierfuzz.evidence import Evidence
from tierfuzz.observation import Observation
from tierfuzz.program import Generate, Operation, Program, Restart
from tierfuzz.report.handover.pages import LEGEND, Pages
from tierfuzz.report.handover.story import Chapter, chapters, observed
from tierfuzz.report.handover.words import expected_text, operation_text, reply_text
from tierfuzz.runevents import BatchesSeen, OperationDone, RequestSent, RestSought, VerdictGiven
from tierfuzz.verdict import Verdict

HEAD = """What happened: {count} operations, engine {engine}, {policy}, pages of {page} tokens.

Times are milliseconds since the first event. `op0#3` is page 3 (from 0) of the prompt and answer of op0.
Pages are where events claim them to be: {legend}.
"""
Line = tuple[float, str]


def timeline_text(program: Program, evidence: Evidence) -> str:
    """The whole run."""
    fleet = program.fleet
    head = HEAD.format(
        count=len(program.operations),
        engine=fleet.engine,
        policy=fleet.policy,
        page=fleet.page_size,
        legend=LEGEND,
    )
    teller = _Teller(program, evidence)
    return head + "".join(teller.chapter(chapter) for chapter in chapters(evidence))


class _Teller:
    def __init__(self, program: Program, evidence: Evidence) -> None:
        self._page = program.fleet.page_size
        self._pages = Pages(program.fleet)
        self._observed = observed(evidence)
        self._start = _first_time(evidence, self._observed)
        self._now = self._start
        self._said: set[tuple[str, str]] = set()
        self._rows: dict[str, tuple[int, tuple[int, ...]]] = {}  # request: worker, pages

    def chapter(self, chapter: Chapter) -> str:
        """One operation: a line a happening, sorted by time, then the pages whose tier changed."""
        operation = chapter.operation
        title = f"{operation.id}  {operation_text(operation)}" if operation else "at the end"
        for sent in chapter.sent:
            self._meet(sent)
        before = self._states()
        lines = [line for event in chapter.events for line in self._lines(event)]
        lines.sort(key=lambda line: line[0])
        body = [f"  {(at - self._start) * 1000:9.1f}  {text}" for at, text in lines]
        body += self._changes(before, operation)
        return "\n".join(["", title, *body]) + "\n"

    def _meet(self, sent: RequestSent) -> None:
        """Learn the pages of a request."""
        request, seen = sent.request, self._observed.get(sent.request.id)
        hashes = self._pages.hashes(request, sent.tokens + (seen.output_ids if seen else ()))
        self._pages.name(request.id, hashes)
        known = any(hashes == old[: len(hashes)] for _, old in self._rows.values())
        if request.role != "filler" and not known:
            self._rows[request.id] = (request.worker, hashes)

    # happenings ------------------------------------------------------------------------------------
    def _lines(self, event: object) -> list[Line]:
        if isinstance(event, RequestSent):
            return [self._sent(event)]
        if isinstance(event, BatchesSeen):
            return self._batches(event)
        if isinstance(event, RestSought):
            text = "at rest" if event.at_rest else f"not at rest: {event.reason}"
            return [(self._now, f"worker {event.worker} {text}")]
        if isinstance(event, VerdictGiven):
            return self._verdict(event.verdict)
        if isinstance(event, OperationDone):
            if isinstance(event.operation, Restart):
                self._pages.clear(event.operation.worker)
            self._now = max([self._now, *(seen.ended for seen in event.observations)])
            return [(seen.ended, _answered(seen)) for seen in event.observations]
        return []

    def _sent(self, event: RequestSent) -> Line:
        request, seen = event.request, self._observed.get(event.request.id)
        at = seen.started if seen else self._now
        if event.request.role != "filler":  # those are made together, and sent one after another
            self._now = max(self._now, seen.ended if seen else at)
        filler = "" if request.role == "filler" else f"; expected {expected_text(event.forecast, self._page)}"
        return at, f"sent {request.id}: {len(event.tokens)} tokens{filler}"

    def _verdict(self, verdict: Verdict) -> list[Line]:
        """The first of each oracle in an operation; verdict.txt counts the others."""
        seen = self._observed.get(verdict.operation)
        at = max(self._now, seen.ended) if seen else self._now
        key = (verdict.operation, verdict.oracle)
        if key in self._said:
            return []
        self._said.add(key)
        return [(at, f"{verdict.outcome.upper()} {verdict.oracle}: {verdict.message}")]

    def _batches(self, event: BatchesSeen) -> list[Line]:
        lines = []
        for batch in event.batches:
            self._now = max(self._now, batch.received)
            texts = "; ".join([*self._pages.event_texts(batch), *(f"({f.detail})" for f in batch.faults)])
            how = " (replayed)" if batch.replayed else ""
            lines.append((batch.received, f"worker {event.worker} batch {batch.seq}{how}: {texts}"))
            self._pages.apply(event.worker, batch)
        return lines

    # pages -----------------------------------------------------------------------------------------
    def _states(self) -> dict[str, str]:
        return {name: self._pages.state(worker, hashes) for name, (worker, hashes) in self._rows.items()}

    def _changes(self, before: dict[str, str], operation: Operation | None) -> list[str]:
        """Rows of pages that this operation asked for, or whose tiers have changed."""
        lines = []
        asked = operation.id if isinstance(operation, Generate) else ""
        for name, after in self._states().items():
            if after and (name == asked or after != before[name]):
                worker, same = self._rows[name][0], after == before[name]
                lines.append(f"  pages of {name} on worker {worker}")
                lines.append(f"    before {before[name]}" + (" (and after)" if same else ""))
                lines += [] if same else [f"    after  {after}"]
        workers = sorted({worker for worker, _ in self._rows.values()})
        totals = [f"  claimed on worker {worker}: {self._pages.totals(worker)}" for worker in workers]
        return lines + (totals if operation is not None else [])


def _answered(seen: Observation) -> str:
    outputs = f", outputs {list(seen.output_ids[:8])}" if seen.output_ids else ""
    return f"answered {seen.operation}: {reply_text(seen)}{outputs}"


def _first_time(evidence: Evidence, observed: Mapping[str, Observation]) -> float:
    """Of a request or a batch, whichever came first."""
    seen = (event for event in evidence.events if isinstance(event, BatchesSeen))
    times = [batch.received for event in seen for batch in event.batches]
    return min([*times, *(one.started for one in observed.values())], default=0.0)

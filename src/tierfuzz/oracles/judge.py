"""The judge of one worker (rank 0): told in order what was sent, seen and proved, it says what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tierfuzz.events import Batch, EventFault
from tierfuzz.eventview import EventView
from tierfuzz.forecast.contract import Contract, Forecast
from tierfuzz.forecast.history import History, leading_in
from tierfuzz.hashing import page_hashes
from tierfuzz.ledger import Ledger
from tierfuzz.observation import Observation
from tierfuzz.oracles.burst import BurstWatch, check_burst, learn_from, member_of
from tierfuzz.oracles.docket import Docket
from tierfuzz.oracles.known import KnownPrefix, KnownPrompts
from tierfuzz.oracles.reach import note_event, note_reply, note_sent
from tierfuzz.oracles.registry import ORACLE_OF_FAULT, TRANSPORT_FAULTS
from tierfuzz.oracles.replies import Contents, Expectation, beside, check_reply, settle_storage
from tierfuzz.oracles.rest import RestChecks
from tierfuzz.oracles.storage import StorageWatch
from tierfuzz.oracles.streams import Stream
from tierfuzz.oracles.transitions import Transitions
from tierfuzz.program import FleetConfig, Generate
from tierfuzz.traits import Traits
from tierfuzz.verdict import Verdict


class Judge:
    """See the module; `take_verdicts`, `held` and `reach` are the output."""

    def __init__(self, fleet: FleetConfig, worker: int, traits: Traits | None = None) -> None:
        self.fleet = fleet
        self.worker = worker
        self.traits = traits or Traits()
        self.docket = Docket(worker)
        self.reach: Counter[str] = Counter()
        self._transitions = Transitions(self.reach)
        self.history = History()
        self.storage = StorageWatch(self.docket, fleet, self.history)
        self.ledger = Ledger()
        self.view = EventView(self.ledger)
        self.view.backs_up_own = fleet.policy != "write_back" and not self.storage.configured
        self.contract = Contract(fleet, self.history)
        stored = self.storage.configured
        self._stream = Stream(self.docket, self.ledger, self.view, fleet, self.traits, stored)
        self._rest = RestChecks(
            self.docket, fleet, self.ledger, self.view, self._stream, self.history, stored
        )
        self._contents = Contents(self.docket, fleet.layers)
        self.open: dict[str, Expectation] = {}
        self._unsettled: tuple[Expectation, Observation] | None = None
        self._known = KnownPrompts()
        self._operation = ""
        self._just_flushed = False
        self._prefill_only = 0  # requests without outputs since rest was last proved
        self._held_copies = False

    # requests --------------------------------------------------------------------------------------
    def expect(
        self, generate: Generate, tokens: tuple[int, ...], *, at_rest: bool, alone: bool = True
    ) -> Forecast:
        """A request is about to be sent. `at_rest`: rest is proved and every event is in hand."""
        quiet = at_rest and alone and not self._held_copies
        expectation = self._expectation(generate, tokens, quiet=quiet)
        self.view.in_flight = {expectation.namespace} if quiet else None
        self._begin(generate, expectation)
        self._watch([expectation], quiet)
        return expectation.forecast

    def expect_together(
        self, requests: Sequence[tuple[Generate, tuple[int, ...]]], *, at_rest: bool = False
    ) -> None:
        """Requests are about to be sent together: each may be computed before any other (6.6, O1)."""
        made = [self._expectation(generate, tokens, quiet=False) for generate, tokens in requests]
        self.history.together(sum(own.most_stored for own in made))
        self.view.in_flight = {own.namespace for own in made} if at_rest else None
        wider = [beside(own, [mate for mate in made if mate is not own]) for own in made]
        for (generate, _), own in zip(requests, wider, strict=True):
            self._begin(generate, own)
        self._watch(wider, at_rest and not self._held_copies)
        self.reach["overlap"] += 1

    def _watch(self, made: list[Expectation], at_rest: bool) -> None:
        """Follow what happens from rest until rest is proved again."""
        watched = made if at_rest and not self.storage.configured else []
        members = [member_of(own, self.view) for own in watched]
        self._stream.watch = BurstWatch(members) if members else None

    def _expectation(self, generate: Generate, tokens: tuple[int, ...], quiet: bool) -> Expectation:
        namespace = generate.namespace or ""
        hashes = self._hashes(namespace, tokens)
        announced = self.view.leading_on_host(namespace, hashes)
        forecast = self.contract.forecast(
            namespace, hashes, len(tokens), generate.logprob_start, quiet, announced
        )
        usable = hashes[: forecast.limit]
        ever = leading_in(self.history.ever, namespace, usable)
        view = self.view.prefix(namespace, usable) if quiet else None
        if self.storage.configured:  # what a prefetch has brought counts as host later (5.8)
            forecast = replace(forecast, most=max(forecast.most, ever))
        stored = self.storage.forecast(namespace, usable, view)
        pages = (len(tokens) + max(1, generate.outputs)) // self.fleet.page_size  # one more at n = 0 (B15)
        return Expectation(generate.id, namespace, hashes, tokens, 0, forecast, view, ever, stored, pages)

    def _begin(self, generate: Generate, made: Expectation) -> None:
        began = self.history.begin(made.namespace, made.hashes, made.operation)
        self.view.begin(made.namespace, made.hashes)
        if self.storage.configured and not self.traits.seeded_namespaces:
            self.view.begin("", made.hashes)  # a prefetch may land in no namespace (B6b)
        self.open[generate.id] = replace(made, began=began)
        self._unsettled = None
        self._operation = generate.id
        self._prefill_only += generate.outputs == 0
        self._just_flushed = False
        note_sent(self.reach, generate, made, self.fleet.page_size, self._held_copies)

    def _hashes(self, namespace: str, tokens: Sequence[int]) -> tuple[int, ...]:
        return page_hashes(tokens, self.fleet.page_size, self.traits.seed(namespace))

    def replied(self, generate: Generate, seen: Observation) -> None:
        """A reply, an abort or a failure."""
        expected = self.open.pop(generate.id)
        self._operation = generate.id
        if seen.status == "failed":
            self.history.lose(expected.most_stored)
            return
        for slug in ("hang", "crash"):
            self.docket.holds(slug)
        hashes = self._hashes(expected.namespace, expected.tokens + seen.output_ids)
        if not seen.output_ids and not expected.alone and len(hashes) < expected.most_stored:
            self.history.loosen(expected.namespace, hashes)
            self.view.loosen(expected.namespace, hashes)
        self.history.end(expected.namespace, hashes, expected.operation, seen.retractions)
        self.view.begin(expected.namespace, hashes, late=True)
        self.reach["aborted"] += seen.status == "aborted"
        if seen.prompt_tokens is not None:
            check_reply(self.docket, self.fleet.page_size, expected, seen)
            if expected.storage is not None:
                self._unsettled = (expected, seen)
            note_reply(self.reach, expected, seen)
            if self.traits.silent_revival:
                served = (seen.cached_tokens or 0) // self.fleet.page_size
                self.view.candidates(expected.namespace, hashes[min(expected.forecast.limit, served) :])
            self._contents.check(expected, seen)
        if self._stream.watch is not None:
            self._stream.watch.note(expected.operation, seen, hashes)
        if seen.status == "ok":
            self._complete(generate, expected, seen, hashes)

    def _complete(
        self, generate: Generate, expected: Expectation, seen: Observation, hashes: tuple[int, ...]
    ) -> None:
        """At least fl(P+n-1) pages are in the tree (6.2-2)."""
        outputs = len(seen.output_ids)
        sure = (len(expected.tokens) + max(0, outputs - 1)) // self.fleet.page_size
        self.history.complete(expected.namespace, hashes[:sure], expected.operation, expected.began)
        self._rest.unheard.completed(hashes[:sure], expected.operation)
        prompt = hashes[: len(expected.tokens) // self.fleet.page_size]
        self._rest.completed(prompt, expected.began, lone=expected.view is not None)
        self._known.add(generate, expected.tokens, expected.hashes)

    # what the worker said --------------------------------------------------------------------------
    def batch(self, batch: Batch) -> None:
        """An event batch, in order."""
        self._stream.apply(batch, self._operation)
        self.storage.apply(batch)
        for event in batch.events:
            self._rest.follow(event)
            self._transitions.follow(event)
            note_event(self.reach, event, self.view)

    def finding(self, fault: EventFault) -> None:
        """A finding of the event socket; those of batches come with the batch."""
        if fault.slug in TRANSPORT_FAULTS:
            self.transport(fault.slug, fault.detail)

    def claims_device(self, namespace: str, tokens: tuple[int, ...]) -> bool:
        """Events claim a device copy of some whole page of this prompt."""
        return any(self.view.on_device(h) for h in self._hashes(namespace, tokens))

    def transport(self, slug: str, detail: str) -> None:
        """A finding of the drivers: a gap, garbage, a crash, a hang."""
        self.docket.violation(ORACLE_OF_FAULT[slug], self._operation, detail, facts={"finding": slug})

    def rested(self) -> None:
        """Rest was proved and every event is in hand."""
        self.history.rest()
        self.view.rested()
        self.reach["at-rest"] += 1
        if self._unsettled is not None:
            settle_storage(self.docket, self.fleet.page_size, self.storage, *self._unsettled)
            self._unsettled = None
        watch, self._stream.watch = self._stream.watch, None
        if watch is not None:
            check_burst(self.docket, self.fleet, watch, self.view, self.traits.silent_revival)
            learn_from(self.view, self.fleet.page_size, watch)
        self._rest.check(self._operation, self._just_flushed, self._prefill_only)
        self._prefill_only = 0

    def gauges(self, metrics: dict[str, float]) -> None:
        """Levels of the worker at rest."""
        self._rest.gauges(metrics, self._operation)

    # control ---------------------------------------------------------------------------------------
    def flushed(self, operation: str) -> None:
        """A flush has succeeded: device and host are empty."""
        self._operation = operation
        self._just_flushed = True
        self._empty()
        self.reach["flush"] += 1

    def restarted(self, operation: str) -> None:
        """The process is a new one: nothing is left."""
        self._operation, self._held_copies = operation, False
        self.ledger.clear()
        self._stream.clear()
        self._empty()
        self.storage.restarted()
        self.reach["restart"] += 1

    def _empty(self) -> None:
        self._stream.watch = None
        self._transitions.clear()
        self.history.clear()
        self.view.clear()
        self._rest.clear()
        self._known.clear()

    def reconfigured(self, attached: bool) -> None:
        """Storage was attached or detached at run time, perhaps with another write policy."""
        self.storage.attached = attached
        self.storage.foreseeable = False  # older pages may never have been written
        self.reach["reconfigured"] += 1

    def holding(self, held: bool) -> None:
        """Copies are held back from now on, or may land again."""
        self._held_copies = held
        self.reach["hold"] += held

    # answers ---------------------------------------------------------------------------------------
    def host_only(self) -> list[KnownPrefix]:
        """Completed prompts that must be served from host now; [] while that cannot be said."""
        return [] if self._held_copies else self._known.host_only(self.contract, self.view)

    def take_verdicts(self) -> list[Verdict]:
        """Violations and unknowns since the last call."""
        return self.docket.take()

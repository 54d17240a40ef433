"""Traffic that overlaps, is aborted, flushed and fetched from storage, on the model of a case's fleet."""

from __future__ import annotations

from dataclasses import replace

from modelled import Modelled

from tierfuzz.catalogue.case import Case
from tierfuzz.faults.registry import make_fault
from tierfuzz.model.engine import Engine
from tierfuzz.model.request import Reply
from tierfuzz.model.rules import rules_for
from tierfuzz.program import Generate
from tierfuzz.prompts import Piece

BETWEEN = (0, 0, 1, 3)  # passes of the scheduler between two requests of a group
ABORTED = 0.3


class Contended(Modelled):
    """Groups of requests that want more than the device pool, some of them aborted."""

    def __init__(self, case: Case, plant: str, seed: int) -> None:
        super().__init__(case, "", seed)
        extra = dict(zip(self.fleet.extra_args[::2], self.fleet.extra_args[1::2], strict=True))
        reserve = int(extra.get("--sim-output-reserve", 4096))
        config = replace(self.engine.config, output_reserve=reserve)
        self.engine = Engine(config, rules_for(self.fleet.profile), [make_fault(plant)] if plant else [])
        if self.fleet.ack_delay_ms:
            self.engine.copies.gate = self._lands

    def step(self) -> None:
        """Mostly a group."""
        kinds = [self.prime, self.come_back, self.crowd, self.crowd, self.flush]
        self.rng.choice([*kinds, self.refetch, self.refetch] if self.fleet.storage_threshold else kinds)()

    def crowd(self) -> None:
        """Earlier prompts, off the device, go on to a quarter of it or more, each with a long answer."""
        known = [self._earlier() for _ in range(self.rng.randint(2, 4))]
        self.turn_over()
        pool, page = self.fleet.device_tokens, self.fleet.page_size
        made = []
        for first, *_ in known:
            outputs = 2 * page + self.rng.choice((0, 5, page))
            most = pool - outputs - 2 * page
            length = max(first.stop + 1, min(most, self.rng.randint(pool // 4, pool * 3 // 4)))
            made.append(self._asked((first, Piece(f"c{self.told}", first.stop, length)), outputs))
        self.together(made)

    def refetch(self) -> None:
        """Flush, then earlier prompts together, some of them twice."""
        known = [self._earlier(), self._earlier()]
        self.flush()
        self.together([self._generate(self.rng.choice(known)) for _ in range(self.rng.randint(2, 3))])

    def _submit(self, request: Generate, tokens: tuple[int, ...]) -> list[Reply]:
        """Some requests find those before them running; some are aborted at once or a little later."""
        replies = super()._submit(request, tokens)
        for _ in range(self.rng.choice(BETWEEN)):
            replies += self._tick()
        if self.judge.reach["overlap"] and self.rng.random() < ABORTED:
            self.engine.abort(request.id)
        return replies

    def _asked(self, prompt: tuple[Piece, ...], outputs: int) -> Generate:
        self.told += 1
        return Generate(f"r{self.told}", 0, prompt, outputs, "repeat")

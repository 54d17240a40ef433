"""Traffic on the step model of a case's fleet, planted or not, told to a judge; no processes."""

from __future__ import annotations

import random

from modelling import levels, observation_of

from tierfuzz.catalogue.case import Case
from tierfuzz.events import Batch
from tierfuzz.faults.registry import make_fault
from tierfuzz.model.config import EngineConfig, StorageConfig
from tierfuzz.model.copies import Copy
from tierfuzz.model.engine import Engine
from tierfuzz.model.pools import EngineCrash
from tierfuzz.model.request import Reply, Request
from tierfuzz.model.rules import rules_for
from tierfuzz.oracles.judge import Judge
from tierfuzz.program import FleetConfig, Generate
from tierfuzz.prompts import Piece, tokens_of
from tierfuzz.traits import Traits

MOST_TICKS = 4000
LANDS = 0.3  # chance at each poll, where copies are slow


def engine_of(fleet: FleetConfig, plant: str) -> Engine:
    """The model of one worker of a fleet; `plant` may be empty."""
    config = EngineConfig(
        page_size=fleet.page_size,
        device_tokens=fleet.device_tokens,
        host_tokens=fleet.host_tokens,
        policy=fleet.policy,
        chunked_prefill=fleet.chunked_prefill,
        storage=StorageConfig(fleet.storage_threshold) if fleet.storage_threshold else None,
    )
    return Engine(config, rules_for(fleet.profile), [make_fault(plant)] if plant else [])


class Modelled:
    """One worker, its judge and random traffic; `dead` once the worker has crashed."""

    def __init__(self, case: Case, plant: str, seed: int) -> None:
        self.fleet = case.fleet
        self.rng = random.Random(seed)
        self.engine = engine_of(case.fleet, plant)
        if case.fleet.ack_delay_ms:
            self.engine.copies.gate = self._lands
        self.judge = Judge(case.fleet, 0, Traits(seeded_namespaces=True, silent_revival=False))
        self.sent: list[Generate] = []
        self.told = 0
        self.dead = False

    def _lands(self, _: Copy) -> bool:
        return self.rng.random() < LANDS

    def violations(self) -> set[str]:
        """Oracles that were violated so far."""
        return {key.partition(":")[2] for key in self.judge.docket.seen if key.startswith("violation")}

    # traffic ---------------------------------------------------------------------------------------
    def step(self) -> None:
        """Something new, something old, or something old that has left the device or the worker."""
        kinds = [self.prime, self.prime, self.again, self.branch, self.come_back]
        self.rng.choice([*kinds, self.from_storage] if self.fleet.storage_threshold else kinds)()

    def prime(self) -> None:
        """A new prompt."""
        self.together([self.fresh()])

    def again(self) -> None:
        """An earlier prompt."""
        self.together([self.repeat()])

    def branch(self) -> None:
        """A prompt that shares a part of an earlier one."""
        self.together([self.fork(self._earlier())])

    def come_back(self) -> None:
        """Turn the device over, then ask for an earlier prompt, at times twice at once."""
        prompt = self._earlier()
        self.turn_over()
        self.together([self._generate(prompt) for _ in range(self.rng.choice([1, 2]))])

    def turn_over(self) -> None:
        """New prompts, as many tokens as the device pool has."""
        due = self.fleet.device_tokens
        while due > 0 and not self.dead:
            filler = self.fresh()
            due -= filler.prompt[0].stop
            self.together([filler])

    def from_storage(self) -> None:
        """Flush, then ask for two prompts that share a part."""
        branch = self._earlier()
        twig = self.fork(branch)
        self.together([self._generate(branch)])
        self.together([twig])
        self.flush()
        self.together([self._generate(branch)])
        self.together([self._generate(twig.prompt)])

    def fresh(self) -> Generate:
        """A prompt of a stream of its own."""
        longest = self.fleet.device_tokens // 6
        return self._generate((Piece(f"p{self.told}", 0, self.rng.randint(1, longest)),))

    def repeat(self) -> Generate:
        """An earlier prompt, often one of the newest."""
        return self._generate(self._earlier())

    def fork(self, origin: tuple[Piece, ...]) -> Generate:
        """A part of another prompt, and up to two pages of another stream."""
        first, *_ = origin
        shared = Piece(first.stream, 0, self.rng.randint(1, first.stop))
        return self._generate(
            (shared, Piece(f"x{self.told}", 0, self.rng.randint(1, 2 * self.fleet.page_size)))
        )

    def _earlier(self) -> tuple[Piece, ...]:
        return self.rng.choice(self.sent).prompt if self.sent else (Piece("p", 0, 40),)

    def _generate(self, prompt: tuple[Piece, ...]) -> Generate:
        self.told += 1
        return Generate(f"r{self.told}", 0, prompt, self.rng.choice([1, 2, 5, 20]), "repeat")

    # one group -------------------------------------------------------------------------------------
    def together(self, requests: list[Generate]) -> None:
        """Requests from rest to rest; one alone is forecast. Nothing more once the worker is dead."""
        if self.dead:
            return
        self.sent = [*self.sent[-24:], *requests]
        made = [(request, tokens_of(request.prompt)) for request in requests]
        if len(made) == 1:
            self.judge.expect(*made[0], at_rest=True)
        else:
            self.judge.expect_together(made, at_rest=True)
        early = [reply for request, tokens in made for reply in self._submit(request, tokens)]
        replies = {reply.rid: reply for reply in [*early, *self.settle()]}
        for request, tokens in made:
            if request.id in replies:
                self.judge.replied(
                    request, observation_of(request, tokens, replies[request.id], len(made) == 1)
                )
        self._rested()

    def _submit(self, request: Generate, tokens: tuple[int, ...]) -> list[Reply]:
        """Send a request; replies that came meanwhile."""
        self.engine.submit(Request(request.id, tokens, request.outputs))
        return []

    def flush(self) -> None:
        """Empty device and host."""
        if self.dead:
            return
        if not self.engine.flush():
            self.dead = True
            self.judge.transport("hang", "a flush was refused at rest")
            return
        self.judge.flushed("flush")
        self.settle()
        self._rested()

    def settle(self) -> list[Reply]:
        """Tick until idle; an error of the engine is its end."""
        replies: list[Reply] = []
        try:
            for _ in range(MOST_TICKS):
                replies += self._tick()
                if self.engine.idle:
                    return replies
        except (EngineCrash, AssertionError) as error:
            self.dead = True
            self.judge.transport("crash", repr(error))
            return replies
        self.dead = True
        self.judge.transport("hang", "the model did not come to rest")
        return replies

    def _tick(self) -> list[Reply]:
        result = self.engine.tick()
        for events in result.batches:
            self.judge.batch(Batch(0, 0.0, 0, tuple(events)))
        return result.replies

    def _rested(self) -> None:
        if not self.dead:
            self.judge.rested()
            self.judge.gauges(levels(self.engine))


def run(case: Case, plant: str, seed: int, steps: int) -> Modelled:
    """Traffic until one of the case's oracles speaks, the worker dies, or the steps are done."""
    modelled = Modelled(case, plant, seed)
    for _ in range(steps):
        modelled.step()
        if modelled.dead or modelled.violations() & set(case.oracles):
            break
    return modelled

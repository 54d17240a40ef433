"""The judge over modelled requests that overlap, follow back to back, are aborted, and go on from answers."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest
from bench import SHAPES, Bench, Shape, allowed
from modelling import observation_of
from recorded import violations

from tierfuzz.model.request import Reply
from tierfuzz.program import WRITE_POLICIES, Generate, WritePolicy
from tierfuzz.prompts import Piece, tokens_of

MORE_SHAPES = [
    Shape(16, 512, 2.0, 8192, 0.2),
    Shape(16, 512, 1.0, 8192, 0.3),
    Shape(16, 512, 3.0, 48, 0.3),
    Shape(16, 1024, 2.0, 8192, 0.3),
    Shape(10, 100, 4.0, 8190, 0.3, 0),  # decode runs out of room: retractions
    Shape(12, 144, 2.0, 48, 0.3, 4),
]
STEPS = 60
SEEDS = range(12)
OUTPUTS = (0, 1, 2, 3, 5, 20)
LONG_OUTPUTS = (1, 20, 30, 40)
Sent = tuple[Generate, tuple[int, ...]]  # a request and its tokens


@dataclass
class Traffic:
    """Random requests for one worker, drawn from a seed."""

    bench: Bench
    shape: Shape
    dice: random.Random
    count: int = 0
    past: list[Generate] = field(default_factory=list)
    answers: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def request(self) -> Sent:
        """A new prompt, one of before, or one that goes on from an answer."""
        self.count += 1
        if self.past and self.dice.random() < 0.45:
            return self._again(self.dice.choice(self.past[-12:]))
        length = max(1, int(self.dice.random() * self.shape.longest))
        if self.dice.random() < 0.3:
            length = max(1, length // self.shape.page_size) * self.shape.page_size
        cut = int(self.dice.random() * length)
        stream = f"f{self.count}" if self.dice.random() < 0.4 else f"s{self.dice.randrange(6)}"
        pieces = (Piece(stream, 0, cut), Piece(f"t{self.dice.randrange(3)}", cut, length))
        prompt = tuple(piece for piece in pieces if len(piece))
        return self._made(prompt, self.dice.choice([None] * 4 + ["a", "b"]))

    def _again(self, old: Generate) -> Sent:
        answer = self.answers.get(old.id, ())
        tokens = (*tokens_of(old.prompt), *answer)
        if answer and len(tokens) + 20 < self.shape.longest and self.dice.random() < 0.3:
            turn = tokens_of((Piece(f"t{self.dice.randrange(3)}", 0, self.dice.randrange(1, 20)),))
            return self._made(old.prompt, old.namespace)[0], (*tokens, *turn)
        other = self.dice.random() < 0.1
        return self._made(old.prompt, self.dice.choice([None, "a", "b"]) if other else old.namespace)

    def _made(self, prompt: tuple[Piece, ...], namespace: str | None) -> Sent:
        tokens = tokens_of(prompt)
        start = int(self.dice.random() * len(tokens)) if self.dice.random() < 0.1 else None
        outputs = self.dice.choice(LONG_OUTPUTS if self.shape.output_reserve < 20 else OUTPUTS)
        return Generate(str(self.count), 0, prompt, outputs, "repeat", namespace, start), tokens

    def step(self) -> None:
        """A burst, some requests back to back, a flush, or one request, and then rest."""
        kind = self.dice.random()
        if kind < 0.02:
            self.bench.flush(f"flush{self.count}")
        elif kind < 0.25:
            self._burst([self.request() for _ in range(self.dice.randrange(2, 5))])
        elif kind < 0.35:
            self._back_to_back([self.request() for _ in range(self.dice.randrange(2, 4))])
        else:
            self._alone(self.request())
        self.bench.rested()

    def _alone(self, sent: Sent) -> None:
        self.bench.judge.expect(*sent, at_rest=True)
        self.bench.submit(*sent)
        self._receive([sent], self.bench.settle())

    def _burst(self, sent: list[Sent]) -> None:
        if self.dice.random() < 0.3:
            twin, tokens = sent[0]
            name, outputs = sent[1][0].id, sent[1][0].outputs
            sent[1] = (Generate(name, 0, twin.prompt, outputs, "repeat", twin.namespace), tokens)
        self.bench.judge.expect_together(sent, at_rest=True)
        replies: list[Reply] = []
        for generate, tokens in sent:
            self.bench.submit(generate, tokens)
            for _ in range(self.dice.choice([0, 0, 0, 1, 2, 5])):
                replies += self.bench.tick()
            if self.dice.random() < 0.15:
                self.bench.engine.abort(generate.id)
        if self.dice.random() < 0.3:
            self.bench.engine.abort(self.dice.choice(sent)[0].id)
        self._receive(sent, replies + self.bench.settle())

    def _back_to_back(self, sent: list[Sent]) -> None:
        for one in sent:
            self.bench.judge.expect(*one, at_rest=False)
            self.bench.submit(*one)
            replies: list[Reply] = []
            while not replies:
                replies = self.bench.tick()
            self._receive([one], replies)
        self.bench.settle()

    def _receive(self, sent: list[Sent], replies: list[Reply]) -> None:
        assert len(replies) == len(sent)
        requests = {generate.id: (generate, tokens) for generate, tokens in sent}
        for reply in replies:
            generate, tokens = requests[reply.rid]
            self.answers[reply.rid] = tuple(reply.output_ids)
            self.past.append(generate)
            self.bench.judge.replied(generate, observation_of(generate, tokens, reply))


def traffic(profile: str, policy: WritePolicy, seed: int) -> Traffic:
    """A whole run."""
    shapes = SHAPES + MORE_SHAPES
    shape = shapes[seed % len(shapes)]
    run = Traffic(Bench(profile, policy, shape), shape, random.Random(seed))
    for _ in range(STEPS):
        run.step()
    return run


@pytest.mark.parametrize("policy", WRITE_POLICIES)
@pytest.mark.parametrize("profile", ["default", "sglang-0.5.17", "sglang-0.5.23"])
def test_requests_that_overlap_show_only_known_defects(profile: str, policy: WritePolicy) -> None:
    for seed in SEEDS:
        run = traffic(profile, policy, seed)
        judge = run.bench.judge
        assert set(violations(judge)) <= allowed(profile, policy, run.shape), (seed, judge.take_verdicts())


@pytest.mark.parametrize("policy", WRITE_POLICIES)
def test_requests_are_retracted_where_admission_keeps_no_room_for_outputs(policy: WritePolicy) -> None:
    run = traffic("default", policy, 10)
    assert run.bench.engine.counters["retractions"] > 0
    assert not violations(run.bench.judge)


@pytest.mark.parametrize("policy", WRITE_POLICIES)
def test_every_oracle_of_requests_makes_claims(policy: WritePolicy) -> None:
    held: Counter[str] = Counter()
    for seed in (0, 1, 6):
        held += traffic("default", policy, seed).bench.judge.docket.held
    for slug in (
        "overlap-miss",
        "overlap-excess",
        "load-accounting",
        "insert-bound",
        "prefix-miss",
        "no-backup",
    ):
        assert held[slug] > 0

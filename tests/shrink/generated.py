"""Random programs as the state machine makes them, from a seed and without Hypothesis."""

from __future__ import annotations

import random

from tierfuzz.program import (
    Fill,
    FleetConfig,
    Flush,
    Generate,
    Hold,
    Idle,
    Operation,
    Program,
    Release,
)
from tierfuzz.strategies import operations as ops
from tierfuzz.strategies import prompts

MOST_SENT = 24
KINDS = (
    "prime",
    "repeat",
    "fill",
    "push",
    "come",
    "come",
    "fork",
    "grow",
    "namespaced",
    "burst",
    "quiet",
    "hold",
)


def program_of(fleet: FleetConfig, rng: random.Random, length: int) -> Program:
    """At least so many operations on that fleet."""
    maker = _Maker(fleet, rng)
    maker.add(ops.prime(fleet, "op0", maker.prime()))
    while len(maker.done) < length:
        maker.one(rng.choice(KINDS))
    return Program(fleet, tuple(maker.done))


class _Maker:
    def __init__(self, fleet: FleetConfig, rng: random.Random) -> None:
        self.fleet, self.rng = fleet, rng
        self.done: list[Operation] = []
        self.sent: list[Generate] = []
        self.held: set[int] = set()

    @property
    def name(self) -> str:
        return f"op{len(self.done)}"

    def add(self, operation: Operation) -> None:
        self.done.append(operation)
        if isinstance(operation, Generate) and operation.role not in ("probe", "repeat"):
            self.sent = [*self.sent[1 - MOST_SENT :], operation]

    def length(self) -> tuple[int, int | None]:
        return self.rng.randrange(4096), self.rng.choice((1, 0, -1, 3, None, None, None, None))

    def outputs(self) -> tuple[int, int]:
        return self.rng.choice(((0, 1), (0, 2), (0, 5), (0, 0), (0, 3), (1, 0), (1, 3)))

    def prime(self) -> ops.PrimeDraw:
        source = self.rng.choice((*[None] * 5, *range(5)))
        return self.rng.randrange(64), source, self.length(), self.outputs()

    def one(self, kind: str) -> None:
        fleet, rng, name = self.fleet, self.rng, self.name
        worker, earlier = rng.randrange(fleet.workers), rng.choice(self.sent)
        if kind == "prime":
            self.add(ops.prime(fleet, name, self.prime()))
        elif kind == "repeat":
            self.add(ops.again(earlier, name, "repeat"))
        elif kind == "fill":
            draw = (
                worker,
                rng.choice((1.0, 1.2, 0.6)),
                rng.choice((0.125, 0.1, 0.14)),
                rng.choice((0, 0, 2)),
            )
            self.add(ops.fill(fleet, name, draw))
        elif kind in ("push", "come"):
            self.add(Fill(name, earlier.worker, f"f-{name}", target=earlier.id))
            if kind == "come":
                self.add(ops.again(earlier, self.name, "probe"))
        elif kind in ("fork", "grow", "namespaced"):
            self.shared(kind)
        elif kind == "burst":
            self.add(ops.burst(fleet, self.sent, name, worker, self.members()))
        elif kind == "quiet":
            self.add(rng.choice((Idle, Idle, Flush))(name, worker))
        else:
            self.add((Release if worker in self.held else Hold)(name, worker))
            self.held ^= {worker}

    def shared(self, kind: str) -> None:
        fleet, rng = self.fleet, self.rng
        growable = [
            g for g in self.sent if g.outputs and prompts.length_of(g.prompt) < fleet.device_tokens // 4
        ]
        if kind == "fork":
            draw = (rng.randrange(256), rng.randrange(4096), rng.randrange(4096), self.outputs())
            self.add(ops.fork(fleet, self.sent, self.name, draw))
        elif kind == "grow" and growable:
            grown = (rng.randrange(256), rng.randrange(4096), self.outputs())
            self.add(ops.grow(fleet, growable, self.name, grown))
        else:
            space = rng.choice(ops.NAMESPACES)
            own = (rng.randrange(64), rng.randrange(5), self.length(), self.outputs(), space)
            self.add(ops.namespaced(fleet, self.name, own))

    def members(self) -> list[ops.MemberDraw]:
        abort = (None, None, None, 0.0)
        return [
            (
                self.rng.random() < 0.5,
                self.rng.randrange(256),
                self.length(),
                self.outputs(),
                self.rng.choice(abort),
            )
            for _ in range(self.rng.randint(2, 4))
        ]

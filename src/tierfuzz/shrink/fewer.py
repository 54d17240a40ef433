"""Candidates with fewer things: single removals, merged fillers, smaller bursts, fewer pieces and workers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import msgspec

from tierfuzz.program import Burst, Fill, Generate, Operation, Program
from tierfuzz.prompts import Piece
from tierfuzz.shrink.places import all_requests, with_operations, with_requests, workers_of
from tierfuzz.shrink.repair import repaired

Prompt = tuple[Piece, ...]


def removals(program: Program) -> Iterator[tuple[Operation, Program]]:
    """Each operation, and the program without it, repaired."""
    for index, operation in enumerate(program.operations):
        rest = program.operations[:index] + program.operations[index + 1 :]
        yield operation, with_operations(program, repaired(rest))


def merged_fills(program: Program) -> Iterator[Program]:
    """Two fillers of a worker made one, which stands where the later one was; the last two first."""
    fills = [(index, op) for index, op in enumerate(program.operations) if isinstance(op, Fill)]
    for (first, earlier), (second, later) in reversed(list(pairwise(fills))):
        if earlier.worker == later.worker:
            one = msgspec.structs.replace(
                later, share=earlier.share + later.share, target=later.target or earlier.target
            )
            operations = list(program.operations)
            operations[second] = one
            del operations[first]
            yield with_operations(program, operations)


def bursts_of(program: Program) -> list[Burst]:
    """The bursts, last first: a violation is nearer to those."""
    return [op for op in reversed(program.operations) if isinstance(op, Burst)]


def with_members(program: Program, burst: str, members: tuple[Generate, ...]) -> Program:
    """The burst of that id with these requests only; without any it is gone."""

    def changed(op: Operation) -> Operation:
        return Burst(op.id, members) if isinstance(op, Burst) and op.id == burst else op

    kept = (changed(op) for op in program.operations)
    return with_operations(program, [op for op in kept if not isinstance(op, Burst) or op.requests])


def in_turn(program: Program, burst: str) -> Program:
    """The requests of a burst one after another."""
    operations: list[Operation] = []
    for op in program.operations:
        operations += op.requests if isinstance(op, Burst) and op.id == burst else (op,)
    return with_operations(program, operations)


def spare_pieces(program: Program) -> list[Prompt]:
    """Pieces of prompts of several, each named by the prompt up to and with it; the longest prompts first."""
    prompts = [request.prompt for request in all_requests(program) if len(request.prompt) > 1]
    found = {prompt[: size + 1] for prompt in prompts for size in range(len(prompt))}
    return sorted(found, key=lambda prompt: (-len(prompt), repr(prompt)))


def without_pieces(program: Program, gone: tuple[Prompt, ...]) -> Program:
    """The same pieces left out of every prompt that begins so: what was shared still is."""

    def changed(request: Generate) -> Generate:
        prompt = request.prompt
        kept = tuple(piece for size, piece in enumerate(prompt) if prompt[: size + 1] not in gone)
        return msgspec.structs.replace(request, prompt=kept or prompt[:1])

    return with_requests(program, changed)


def fewer_workers(program: Program) -> Program:
    """Only the workers that something is done to, numbered from 0."""
    used = sorted({worker for op in program.operations for worker in workers_of(op)})
    numbers = {old: new for new, old in enumerate(used)}

    def changed(op: Operation) -> Operation:
        if isinstance(op, Burst):
            moved = (msgspec.structs.replace(r, worker=numbers[r.worker]) for r in op.requests)
            return Burst(op.id, tuple(moved))
        return msgspec.structs.replace(op, worker=numbers[op.worker])

    operations = tuple(changed(op) for op in program.operations)
    return Program(msgspec.structs.replace(program.fleet, workers=max(1, len(used))), operations)

"""What a violation probably needs, from its verdict: candidates to try first, the smallest first."""

from __future__ import annotations

from collections.abc import Iterator

from tierfuzz.program import Burst, Fill, Generate, Operation, Program
from tierfuzz.shrink.places import position_of, streams_of, with_operations, workers_of
from tierfuzz.verdict import Verdict


def truncated(program: Program, verdict: Verdict) -> Program:
    """Without what comes after the violation; the whole program for a verdict without an operation."""
    last = position_of(program.operations, verdict.operation)
    return program if last is None else with_operations(program, program.operations[: last + 1])


def guesses(program: Program, verdict: Verdict) -> Iterator[Program]:
    """Parts of a program that may fail, each once: from the violating operation alone to everything.

    In between: the nearest operation before it that shares a stream, with the fillers since; all that share
    one, with fillers; the same and what else was done to that worker; all of that worker; all up to it.
    """
    cut = truncated(program, verdict)
    seen: set[tuple[Operation, ...]] = set()
    for operations in (*_parts(cut.operations, verdict), cut.operations, program.operations):
        if operations and operations not in seen:
            seen.add(operations)
            yield with_operations(program, operations)


def _parts(operations: tuple[Operation, ...], verdict: Verdict) -> Iterator[tuple[Operation, ...]]:
    mine = tuple(op for op in operations if verdict.worker in workers_of(op))
    if position_of(operations, verdict.operation) is not None and mine:
        related = [index for index, op in enumerate(mine) if _related(mine, op)]
        yield mine[-1:]
        yield from (_since(mine, related[-most:], controls=False) for most in (2, 3) if len(related) > most)
        yield _since(mine, related, controls=False)
        yield mine[-4:]
        yield _since(mine, related, controls=True)
    yield mine


def _related(operations: tuple[Operation, ...], operation: Operation) -> bool:
    """Shares a prompt stream with the last one, makes outputs that it uses, or is what it pushes off."""
    last = operations[-1]
    wanted = streams_of(last)
    if isinstance(last, Fill):
        wanted |= {f"@{last.target}"}
    mine = streams_of(operation) | {f"@{operation.id}"}
    if isinstance(operation, Burst):
        mine |= {f"@{request.id}" for request in operation.requests}
    return operation is last or bool(wanted & mine)


def _since(operations: tuple[Operation, ...], related: list[int], controls: bool) -> tuple[Operation, ...]:
    """The related ones and, since the first of them, fillers (and flushes, holds, restarts, ...)."""
    others = [
        index
        for index, op in enumerate(operations)
        if index > related[0]
        and (isinstance(op, Fill) or (controls and not isinstance(op, Generate | Burst)))
    ]
    return tuple(operations[index] for index in sorted({*related, *others}))

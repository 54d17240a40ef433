"""Where things are in a program: operations of an id, their workers, requests and streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from tierfuzz.program import Burst, Generate, Operation, Program


def requests_of(operation: Operation) -> tuple[Generate, ...]:
    """Its requests, if it names any (those of a filler are not named)."""
    if isinstance(operation, Burst):
        return operation.requests
    return (operation,) if isinstance(operation, Generate) else ()


def all_requests(program: Program) -> list[Generate]:
    """Every request that the program names, in order."""
    return [request for operation in program.operations for request in requests_of(operation)]


def workers_of(operation: Operation) -> frozenset[int]:
    """The workers that it is about."""
    if isinstance(operation, Burst):
        return frozenset(request.worker for request in operation.requests)
    return frozenset((operation.worker,))


def streams_of(operation: Operation) -> frozenset[str]:
    """Streams of its prompts; "@ID" among them."""
    return frozenset(piece.stream for request in requests_of(operation) for piece in request.prompt)


def position_of(operations: Sequence[Operation], name: str) -> int | None:
    """Index of the operation that a verdict names: its id, or that of a request of it ("op5.7")."""
    best: int | None = None
    for index, operation in enumerate(operations):
        ids = (operation.id, *(request.id for request in requests_of(operation)))
        if name in ids:
            return index
        if name.startswith(f"{operation.id}."):
            best = index
    return best


def with_requests(program: Program, change: Callable[[Generate], Generate]) -> Program:
    """The same program with every request that it names changed."""

    def changed(operation: Operation) -> Operation:
        if isinstance(operation, Burst):
            return Burst(operation.id, tuple(change(request) for request in operation.requests))
        return change(operation) if isinstance(operation, Generate) else operation

    return with_operations(program, tuple(changed(operation) for operation in program.operations))


def with_operations(program: Program, operations: Sequence[Operation]) -> Program:
    """The same fleet with other operations."""
    return msgspec.structs.replace(program, operations=tuple(operations))

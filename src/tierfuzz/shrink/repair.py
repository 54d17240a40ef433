"""Operations that lost what they refer to: made whole again, or left out, never run broken."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tierfuzz.program import (
    Attach,
    Burst,
    ClearStorage,
    Detach,
    Fill,
    Flush,
    Generate,
    Hold,
    Operation,
    Release,
    Restart,
)
from tierfuzz.prompts import Piece

LOST = "lost-"


def repaired(operations: Iterable[Operation]) -> tuple[Operation, ...]:
    """The same operations, each with what it refers to.

    A piece of outputs that nobody makes any more becomes one of the same length of a stream of its own (those
    who shared it still do); one that asks for more than there is, is cut. A filler without its target has
    none. A Release without a Hold, a second Hold, a prompt without tokens and an empty burst are left out.
    """
    return _Repair().all(operations)


class _Repair:
    def __init__(self) -> None:
        self._outputs: dict[str, int] = {}  # of requests that have ended
        self._held: set[int] = set()

    def all(self, operations: Iterable[Operation]) -> tuple[Operation, ...]:
        made = (self._operation(operation) for operation in operations)
        return tuple(operation for operation in made if operation is not None)

    def _operation(self, operation: Operation) -> Operation | None:
        if isinstance(operation, Generate):
            return self._requests((operation,))[0] if self._prompt(operation) else None
        if isinstance(operation, Burst):
            members = self._requests(operation.requests)
            return msgspec.structs.replace(operation, requests=members) if members else None
        if isinstance(operation, Fill):
            known = operation.target in self._outputs
            return operation if known else msgspec.structs.replace(operation, target="")
        return self._control(operation)

    def _control(self, operation: Operation) -> Operation | None:
        if isinstance(operation, Hold):
            known = operation.worker in self._held
            self._held.add(operation.worker)
            return None if known else operation
        if isinstance(operation, Release) and operation.worker not in self._held:
            return None
        if isinstance(operation, Release | Flush | Restart | ClearStorage | Attach | Detach):
            self._held.discard(operation.worker)
        return operation

    def _requests(self, requests: tuple[Generate, ...]) -> tuple[Generate, ...]:
        """Of a burst all at once: none of them knows the outputs of another."""
        made = [(request, self._prompt(request)) for request in requests]
        whole = tuple(msgspec.structs.replace(request, prompt=prompt) for request, prompt in made if prompt)
        self._outputs.update({request.id: request.outputs for request in whole})
        return whole

    def _prompt(self, request: Generate) -> tuple[Piece, ...]:
        return tuple(piece for piece in map(self._piece, request.prompt) if len(piece))

    def _piece(self, piece: Piece) -> Piece:
        if not piece.stream.startswith("@"):
            return piece
        name = piece.stream[1:]
        if name not in self._outputs:
            return Piece(f"{LOST}{name}", piece.start, piece.stop)
        stop = min(piece.stop, self._outputs[name])
        return Piece(piece.stream, min(piece.start, stop), stop)

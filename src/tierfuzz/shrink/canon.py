"""When two programs are the same to a search: ids and names of streams do not count."""

from __future__ import annotations

import hashlib

import msgspec

from tierfuzz.program import Burst, Fill, Generate, Operation, Program
from tierfuzz.prompts import Piece


def key_of(program: Program) -> str:
    """Hash of a program's canonical form, hexadecimal.

    Ids become positions and streams are named in the order of their first use: two programs with one key
    send prompts of the same lengths that share the same parts, in the same order. It is made of the repr,
    which has every field: the encoding leaves some defaults out and not others.
    """
    return hashlib.sha256(repr(canonical(program)).encode()).hexdigest()[:32]


def canonical(program: Program) -> Program:
    """The same program with ids and streams renamed."""
    names = _Names()
    return msgspec.structs.replace(
        program, operations=tuple(names.operation(op) for op in program.operations)
    )


class _Names:
    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._streams: dict[str, str] = {}

    def operation(self, operation: Operation) -> Operation:
        if isinstance(operation, Burst):
            members = tuple(self._generate(member) for member in operation.requests)
            return Burst(self._id(operation.id), members)
        if isinstance(operation, Generate):
            return self._generate(operation)
        if isinstance(operation, Fill):
            target = self._ids.get(operation.target, operation.target)
            stream = self._stream(operation.stream)
            return msgspec.structs.replace(operation, id=self._id(operation.id), stream=stream, target=target)
        return msgspec.structs.replace(operation, id=self._id(operation.id))

    def _generate(self, request: Generate) -> Generate:
        prompt = tuple(Piece(self._stream(p.stream), p.start, p.stop) for p in request.prompt)
        return msgspec.structs.replace(request, id=self._id(request.id), prompt=prompt)

    def _id(self, name: str) -> str:
        return self._ids.setdefault(name, f"#{len(self._ids)}")

    def _stream(self, name: str) -> str:
        if name.startswith("@"):
            return f"@{self._ids.get(name[1:], name[1:])}"
        if "." in name:  # may be a prompt of a filler, which is named after the filler's stream
            return name
        return self._streams.setdefault(name, f"${len(self._streams)}")

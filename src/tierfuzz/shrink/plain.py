"""Plainer values of one operation: fewer outputs, no namespace, no abort, a filler without answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from tierfuzz.program import Burst, Fill, FleetConfig, Generate, Operation, Program
from tierfuzz.shrink.places import all_requests, with_operations

T = TypeVar("T", bound=Generate | Fill)
Edit = Callable[[Program], Program]


def edited(program: Program, edits: Iterable[Edit]) -> Program:
    """All edits, one after another."""
    for edit in edits:
        program = edit(program)
    return program


def fewer_outputs(program: Program, most: int) -> list[Edit]:
    """Every request that asks for more outputs asks for `most`; fillers ask for none."""
    edits = [_set(r.id, outputs=most) for r in all_requests(program) if r.outputs > most]
    return edits + [
        _set(op.id, outputs=0) for op in program.operations if isinstance(op, Fill) and op.outputs
    ]


def plainer_requests(program: Program) -> list[Edit]:
    """No namespace, no abort, no logprobs."""
    plain = {"namespace": None, "abort_after_s": None, "logprob_start": None}
    return [
        _set(request.id, **{name: None})
        for name in plain
        for request in all_requests(program)
        if getattr(request, name) is not None
    ]


def plainer_fleet(program: Program) -> list[Edit]:
    """No delays of copies and of steps."""
    names = [n for n in ("ack_delay_ms", "step_delay_ms") if getattr(program.fleet, n)]
    return [_fleet(**{name: 0.0}) for name in names]


def with_plants(program: Program, plants: tuple[str, ...]) -> Program:
    """The same operations on workers with these faults planted."""
    return _fleet(plants=plants)(program)


def with_requests_of_fill(program: Program, fill: str, requests: int) -> Program:
    """That filler sends so many requests, whatever is on device then."""

    def changed(op: Operation) -> Operation:
        if isinstance(op, Fill) and op.id == fill:
            return msgspec.structs.replace(op, share=requests * one_request(program.fleet, op), target="")
        return op

    return with_operations(program, [changed(op) for op in program.operations])


def requests_of_fill(fleet: FleetConfig, fill: Fill) -> int:
    """Requests that its share needs."""
    return max(1, round(fill.share / one_request(fleet, fill) + 0.499))


def one_request(fleet: FleetConfig, fill: Fill) -> float:
    """Share of the device pool that one request of a filler takes: whole pages."""
    pages = max(1, int(fleet.device_tokens * fill.prompt_share) // fleet.page_size)
    return pages * fleet.page_size / fleet.device_tokens


def _set(name: str, **values: object) -> Edit:
    """Change the request or filler of that id."""

    def changed(op: Operation) -> Operation:
        if isinstance(op, Burst):
            return Burst(op.id, tuple(_changed(r, name, values) for r in op.requests))
        return _changed(op, name, values) if isinstance(op, Generate | Fill) else op

    return lambda program: with_operations(program, [changed(op) for op in program.operations])


def _changed(op: T, name: str, values: dict[str, object]) -> T:
    return msgspec.structs.replace(op, **values) if op.id == name else op


def _fleet(**values: object) -> Edit:
    return lambda program: Program(msgspec.structs.replace(program.fleet, **values), program.operations)

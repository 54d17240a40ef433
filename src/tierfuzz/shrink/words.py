"""A small program in words, a line an operation."""

from __future__ import annotations

from tierfuzz.program import Attach, Burst, Fill, Generate, Operation, Program
from tierfuzz.prompts import described


def lines_of(program: Program) -> list[str]:
    """Id, worker and what is done; the requests of a burst have lines of their own."""
    return [line for operation in program.operations for line in _lines(operation)]


def _lines(operation: Operation) -> list[str]:
    if isinstance(operation, Burst):
        head = f"{operation.id}: together"
        return [head, *(f"  {request.id}: {_request(request)}" for request in operation.requests)]
    if isinstance(operation, Generate):
        return [f"{operation.id}: {_request(operation)}"]
    return [f"{operation.id}: worker {operation.worker} {_control(operation)}"]


def _request(request: Generate) -> str:
    parts = [
        f"worker {request.worker} {request.role}",
        described(request.prompt),
        f"outputs {request.outputs}",
    ]
    parts += [f"namespace {request.namespace}"] if request.namespace is not None else []
    parts += [f"logprobs from {request.logprob_start}"] if request.logprob_start is not None else []
    parts += [f"aborted after {request.abort_after_s:g} s"] if request.abort_after_s is not None else []
    return ", ".join(parts)


def _control(operation: Operation) -> str:
    if isinstance(operation, Fill):
        until = f", then until {operation.target} is off device" if operation.target else ""
        return f"fill, {operation.share:g} of the device pool{until}, outputs {operation.outputs}"
    tag = str(operation.__struct_config__.tag).replace("_", " ")
    return f"{tag} {operation.policy}" if isinstance(operation, Attach) else tag

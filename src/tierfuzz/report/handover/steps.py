"""A program as the plain data of repro.py: what to send, what was expected of it, and what was accused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tierfuzz.engines.registry import driver_of
from tierfuzz.evidence import Evidence
from tierfuzz.oracles.registry import ORACLES
from tierfuzz.program import (
    Attach,
    Burst,
    ClearStorage,
    Deregister,
    Detach,
    Fill,
    FleetConfig,
    Generate,
    Hold,
    Operation,
    Program,
    RestartConsumer,
)
from tierfuzz.report.handover.launch import key_of, launches, used_workers
from tierfuzz.report.handover.story import observed, sent
from tierfuzz.report.handover.words import expected_text, operation_text, reply_text
from tierfuzz.resolve import filler_prompts
from tierfuzz.runner import RESTFUL_ROLES
from tierfuzz.verdict import Verdict

Data = dict[str, Any]
MOST_AN_ORACLE = 3
STORAGE_PATH = "/hicache/storage-backend"
# Judged where events are booked (script.book); the others are functions of script.checks, by their slugs.
BY_EVENTS = frozenset(
    {
        "duplicate-store",
        "event-order",
        "malformed-event",
        "missing-medium",
        "orphan-parent",
        "over-capacity",
        "sequence-gap",
        "unexplained-store",
        "unknown-medium",
        "unmatched-removal",
    }
)
BY_TRANSPORT = frozenset({"crash", "hang"})
FALLBACK = "accounting"


def setup_of(program: Program, verdicts: Sequence[Verdict]) -> Data:
    """Sizes, policy and traits of the fleet, and where its workers are expected."""
    fleet = program.fleet
    driver, traits = driver_of(fleet), driver_of(fleet).traits(fleet)
    first = verdicts[0].oracle if verdicts else ""
    return {
        "title": f"{first}: {ORACLES[first].explanation}" if first in ORACLES else "A program of tierfuzz.",
        "workers": [launch.base_url for launch in launches(program)],
        "key": key_of(program),
        "empty": fleet.starts_empty,
        "policy": fleet.policy,
        "page": fleet.page_size,
        "device_pages": fleet.device_tokens // fleet.page_size,
        "host_pages": fleet.host_tokens // fleet.page_size,
        "removal_first": None
        if fleet.storage_threshold
        else fleet.policy == "write_back" and traits.removal_first,
        "backup_hits": _backup_hits(fleet),
        "backup_newest": fleet.host_tokens < fleet.device_tokens,
        "silent_revival": traits.silent_revival,
        "confirmations": driver.confirmations,
        "fresh_gauges": driver.fresh_gauges,
        "bound_s": fleet.patience_s or driver.request_bound_s,
    }


def _backup_hits(fleet: FleetConfig) -> int:
    """Completed requests over a page after which it must have a host copy; 0 where that cannot be said."""
    full = fleet.policy == "write_back" and not fleet.starts_empty
    small = fleet.policy != "write_through" and fleet.host_tokens < fleet.device_tokens
    if full or small or fleet.storage_threshold:
        return 0
    return 2 if fleet.policy == "write_through_selective" else 1


def steps_of(program: Program, evidence: Evidence) -> list[Data]:
    """One an operation; workers are numbered by their place among those that are used."""
    return [_Steps(program, evidence).step(operation) for operation in program.operations]


class _Steps:
    def __init__(self, program: Program, evidence: Evidence) -> None:
        self._fleet = program.fleet
        self._place = {worker: place for place, worker in enumerate(used_workers(program))}
        self._sent, self._observed = sent(evidence), observed(evidence)
        self._traits = driver_of(program.fleet).traits(program.fleet)

    def step(self, operation: Operation) -> Data:
        """What to do, and the words that announce it."""
        head: Data = {"id": operation.id, "text": operation_text(operation)}
        if isinstance(operation, Generate):
            rest = operation.role in RESTFUL_ROLES
            return {**head, "do": "requests", "rest": rest, "calls": [self._call(operation)]}
        if isinstance(operation, Burst):
            calls = [self._call(request) for request in operation.requests]
            return {**head, "do": "requests", "rest": True, "calls": calls}
        head["worker"] = self._place[operation.worker]
        if isinstance(operation, Fill):
            return {**head, "do": "fill", **self._fill(operation)}
        return {**head, **_control(operation, self._fleet)}

    def _call(self, request: Generate) -> Data:
        """`seed`: hex, of the hash chain of its namespace; `most`, `held`, `host_only` in tokens. What is not
        there is None, empty or 0."""
        call: Data = {
            "id": request.id,
            "worker": self._place[request.worker],
            "prompt": [[piece.stream, piece.start, piece.stop] for piece in request.prompt],
            "outputs": request.outputs,
        }
        seed = self._traits.seed(request.namespace or "").hex()
        call |= {"seed": seed} if seed else {}
        special = ("namespace", "logprob_start", "abort_after_s")
        call |= {key: getattr(request, key) for key in special if getattr(request, key) is not None}
        return call | self._known(request.id)

    def _known(self, request: str) -> Data:
        known, seen = self._sent.get(request), self._observed.get(request)
        if known is None:
            return {}
        page, forecast = self._fleet.page_size, known.forecast
        least = {name: getattr(forecast, name) * page for name in ("held", "host_only")}
        told = reply_text(seen) if seen is not None else "no reply"
        figures = {"most": forecast.most * page, **{name: value for name, value in least.items() if value}}
        return {**figures, "expected": expected_text(forecast, page), "seen": told}

    def _fill(self, operation: Fill) -> Data:
        requests = list(filler_prompts(operation, self._fleet))
        return {
            "stream": operation.stream,
            "length": len(requests[0][0].prompt[0]),
            "outputs": operation.outputs,
            "due": sum(due for _, due in requests),
            "most": len(requests),
            "until": operation.target,
        }


def _control(operation: Operation, fleet: FleetConfig) -> Data:
    tag = str(operation.__struct_config__.tag)
    if isinstance(operation, RestartConsumer | Deregister):
        return {"do": "idle"}  # there is no consumer beside the script
    if isinstance(operation, Hold) and not holds_copies(fleet):
        return {"do": "release"}  # as the runner: it changes nothing
    if isinstance(operation, ClearStorage):
        return {"do": tag, "method": "POST", "path": f"{STORAGE_PATH}/clear", "body": None}
    if isinstance(operation, Detach):
        return {"do": tag, "method": "DELETE", "path": STORAGE_PATH, "body": None}
    if isinstance(operation, Attach):
        return {"do": tag, "method": "PUT", "path": STORAGE_PATH, "body": attach_body(operation, fleet)}
    return {"do": tag}


def holds_copies(fleet: FleetConfig) -> bool:
    """Copies can be held back; not with storage, whose prefetches a request waits for."""
    return driver_of(fleet).holds_copies and not fleet.storage_threshold


def attach_body(operation: Attach, fleet: FleetConfig) -> Data:
    """What PUT /hicache/storage-backend takes."""
    extra = msgspec.json.encode({"prefetch_threshold": fleet.storage_threshold}).decode()
    return {
        "hicache_storage_backend": "file",
        "hicache_storage_backend_extra_config_json": extra,
        "hicache_storage_prefetch_policy": "wait_complete",
        "hicache_write_policy": operation.policy,
    }


def accusations(program: Program, verdicts: Sequence[Verdict], checks: Sequence[str]) -> list[Data]:
    """What the verdicts accuse the worker of, a few an oracle. `checks`: names of the functions there are."""
    place = {worker: place for place, worker in enumerate(used_workers(program))}
    found: list[Data] = []
    for verdict in verdicts:
        if not verdict.is_violation:
            continue
        by = _judged_by(verdict, checks)
        told = sum(other["oracle"] == verdict.oracle for other in found)
        if told < (MOST_AN_ORACLE if by in checks and by != FALLBACK else 1):
            where = {"at": verdict.operation, "worker": place.get(verdict.worker, 0)}
            found.append({"oracle": verdict.oracle, **where, "by": by, "facts": dict(verdict.facts)})
    return found


def _judged_by(verdict: Verdict, checks: Sequence[str]) -> str:
    if verdict.oracle in BY_EVENTS:
        return "events"
    if verdict.oracle in BY_TRANSPORT:
        return "transport"
    name = verdict.oracle.replace("-", "_")
    return name if name in checks else FALLBACK

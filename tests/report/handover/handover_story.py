"""A failing run made by hand: a prefix that must be on host is computed again."""

from __future__ import annotations

from tierfuzz.events import Batch, BlockRemoved, BlockStored, KvEvent
from tierfuzz.eventview import Interval, PrefixView
from tierfuzz.evidence import Evidence
from tierfuzz.forecast.contract import Forecast
from tierfuzz.hashing import page_hashes
from tierfuzz.observation import Observation, TierSplit
from tierfuzz.program import Burst, Fill, FleetConfig, Flush, Generate, Operation, Program
from tierfuzz.prompts import Piece, tokens_of
from tierfuzz.runevents import (
    BatchesSeen,
    OperationDone,
    OperationStarted,
    RequestSent,
    RestSought,
    RunEvent,
    VerdictGiven,
)
from tierfuzz.verdict import Outcome, Verdict

FLEET = FleetConfig(
    workers=2, device_tokens=128, host_ratio=3.0, plants=("host-copy-forgotten",)
)  # worker 1 is the one that is used
A, B = Piece("A", 0, 37), Piece("B", 0, 20)
NOTHING = Forecast(2, 0, 0, 0)
OPERATIONS: tuple[Operation, ...] = (
    Generate("op0", 1, (A,), 2),
    Fill("op1", 1, "F", share=0.5, prompt_share=0.5, target="op0"),
    Generate("op2", 1, (A,), 2, "probe"),
    Burst("op3", (Generate("op3.0", 1, (B,), 2), Generate("op3.1", 1, (B,), 2, abort_after_s=0.5))),
    Flush("op4", 1),
)
PROGRAM = Program(FLEET, OPERATIONS)
MISS = Verdict(
    "host-miss",
    Outcome.VIOLATION,
    1,
    "op2",
    "device 0, host 0 tokens; expected nothing from device and at least 32 from host",
    ("pages 0..1 were inserted by op0 and earlier", "4 other pages were inserted since"),
    {"device": 0, "host": 0, "host_only": 32},
    3,
    3,
)
AGAIN = Verdict(
    "duplicate-store",
    Outcome.VIOLATION,
    1,
    "op2",
    "batch 5, block 1 in host: stored again while 1 copies are held",
    facts={"anomaly": "duplicate-store", "blocks": 1},
)
UNSURE = Verdict("ledger-accounting", Outcome.UNKNOWN, 1, "op2", "a host part this short may be declined")
VERDICTS = [MISS, AGAIN, UNSURE]
PAGES = page_hashes(tokens_of((A,)), 16)
FILLER = page_hashes(tokens_of((Piece("F.0", 0, 64),)), 16)


def stored(hashes: tuple[int, ...], medium: str, size: int = 16) -> tuple[KvEvent, ...]:
    """One event a page, as engines publish them."""
    parents = (None, *hashes)
    return tuple(
        BlockStored((block,), parent, (0,) * size, size, medium)
        for parent, block in zip(parents, hashes, strict=False)
    )


def batches(seq: int, received: float, *events: KvEvent) -> BatchesSeen:
    """One batch of worker 1."""
    return BatchesSeen(1, (Batch(seq, 0.0, 0, events, received=received),))


def sent(request: Generate, forecast: Forecast = NOTHING, view: PrefixView | None = None) -> RequestSent:
    """A request with what was known of it."""
    return RequestSent(request, tokens_of(request.prompt), forecast, view)


def reply(request: Generate, started: float, split: TierSplit | None = None) -> Observation:
    """What came back half a millisecond later."""
    return Observation(
        operation=request.id,
        worker=1,
        namespace=None,
        prompt=tokens_of(request.prompt),
        requested_outputs=request.outputs,
        status="aborted" if request.abort_after_s is not None else "ok",
        started=started,
        ended=started + 0.0005,
        output_ids=(7, 8)[: request.outputs] if request.abort_after_s is None else (),
        prompt_tokens=len(tokens_of(request.prompt)),
        cached_tokens=split.total if split else 0,
        split=split,
    )


def events() -> list[RunEvent]:
    """The run as its tape has it."""
    prime, fill, probe, burst, flush = OPERATIONS
    assert isinstance(prime, Generate)
    assert isinstance(probe, Generate)
    assert isinstance(burst, Burst)
    filler = Generate("op1.0", 1, (Piece("F.0", 0, 64),), 0, "filler")
    must = Forecast(2, 2, 2, 2, MISS.reasons)
    view = PrefixView(Interval(2, 2), Interval(0, 0))
    return [
        OperationStarted(prime),
        sent(prime),
        batches(1, 10.0006, *stored(PAGES, "GPU")),
        OperationDone(prime, 1, (reply(prime, 10.0),)),
        OperationStarted(fill),
        batches(2, 10.001, *stored(PAGES, "CPU_PINNED")),
        RestSought(1, True, ""),
        sent(filler),
        batches(3, 10.003, BlockRemoved(PAGES, "GPU"), *stored(FILLER, "GPU")),
        OperationDone(fill, 1, (reply(filler, 10.002),)),
        OperationStarted(probe),
        RestSought(1, True, ""),
        sent(probe, must, view),
        batches(4, 10.005, *stored(PAGES, "GPU")),
        VerdictGiven(MISS),
        OperationDone(probe, 1, (reply(probe, 10.004),)),
        OperationStarted(burst),
        batches(5, 10.006, *stored(PAGES, "CPU_PINNED")),
        VerdictGiven(AGAIN),
        RestSought(1, True, ""),
        sent(burst.requests[0]),
        sent(burst.requests[1]),
        OperationDone(
            burst, 2, (reply(burst.requests[0], 10.007), reply(burst.requests[1], 10.0071, TierSplit(16)))
        ),
        OperationStarted(flush),
        OperationDone(flush, 0, ()),
        RestSought(1, False, "the scheduler was not idle within the bound"),
    ]


EVIDENCE = Evidence(tuple(events()))

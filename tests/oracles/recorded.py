"""A sequential recording fed to a judge, operation by operation, as a run would feed it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tierfuzz.events import Batch, KvEvent
from tierfuzz.observation import Observation, TierSplit
from tierfuzz.oracles.judge import Judge
from tierfuzz.program import FleetConfig, Generate
from tierfuzz.prompts import tokens_of
from tierfuzz.recording import Header, OpRecord, Recording, read_recording, windows
from tierfuzz.traits import Traits
from tierfuzz.verdict import Outcome, Verdict

RECORDINGS = Path(__file__).parents[1] / "recordings"
# Without requests that overlap, and without a storage tier.
SEQUENTIAL = sorted(
    path.name
    for path in RECORDINGS.glob("sglang-0.5.17-*.jsonl.xz")
    if "overlap" not in path.name and "storage" not in path.name
)

Seen = tuple[int, TierSplit]  # cached tokens, and where they came from
Probe = Callable[[Judge, int, OpRecord], None]
Window = list[tuple[int, KvEvent]]


@cache
def opened(name: str) -> tuple[Recording, list[Window]]:
    """A recording and the events of each of its operations."""
    recording = read_recording(RECORDINGS / name)
    return recording, windows(recording)


def fleet_of(header: Header) -> FleetConfig:
    """The fleet whose worker has the pools of a recording."""
    ratio = (header.host_tokens - header.page_size) / header.device_tokens
    fleet = FleetConfig(
        policy=header.write_policy,
        workers=1,
        page_size=header.page_size,
        device_tokens=header.device_tokens,
        host_ratio=ratio,
        chunked_prefill=header.chunked_prefill_size,
    )
    assert fleet.host_tokens == header.host_tokens
    return fleet


@dataclass
class Fed:
    """A judge after a recording, and the verdicts that it kept."""

    judge: Judge
    verdicts: list[Verdict]


def violations(judge: Judge) -> Counter[str]:
    """Violations by slug, those that were only counted among them."""
    marks = ((key.split(":"), times) for key, times in judge.docket.seen.items())
    return Counter({slug: times for (outcome, slug), times in marks if outcome == Outcome.VIOLATION})


def feed(name: str, probe: Probe | None = None) -> Fed:
    """Run a recording through a judge; `probe` is called with it just before each reply."""
    recording, found = opened(name)
    judge = Judge(fleet_of(recording.header), 0, Traits(seeded_namespaces=False, removal_first=True))
    verdicts: list[Verdict] = []
    for number, (op, window) in enumerate(zip(recording.ops, found, strict=True)):
        feed_operation(judge, number, op, window, probe)
        verdicts += judge.take_verdicts()
    return Fed(judge, verdicts)


def feed_operation(judge: Judge, number: int, op: OpRecord, window: Window, probe: Probe | None) -> None:
    """One operation, from rest to rest."""
    if op.op == "flush":
        judge.flushed(str(number))
        feed_batches(judge, window)
    else:
        generate = generate_of(number, op)
        judge.expect(generate, tokens_of(op.prompt), at_rest=True)
        feed_batches(judge, window)
        if probe is not None:
            probe(judge, number, op)
        judge.replied(generate, observation_of(number, op, reported(op)))
    judge.rested()


def feed_batches(judge: Judge, window: Window) -> None:
    """Each event as a batch of its own, which the judge does not tell apart."""
    for seq, event in window:
        judge.batch(Batch(seq, 0.0, 0, (event,)))


def generate_of(number: int, op: OpRecord) -> Generate:
    """The request of a recorded operation."""
    return Generate(
        str(number),
        0,
        op.prompt,
        op.max_new_tokens,
        "filler" if op.note == "filler" else "repeat",
        op.extra_key,
        op.logprob_start_len,
    )


def reported(op: OpRecord) -> Seen:
    """Cached tokens and their split, as the engine reported them."""
    return op.cached_tokens or 0, op.cached_tokens_details or TierSplit()


def observation_of(number: int, op: OpRecord, seen: Seen) -> Observation:
    """The reply of a recorded operation, with these counts."""
    cached, split = seen
    return Observation(
        operation=str(number),
        worker=0,
        namespace=op.extra_key,
        prompt=tokens_of(op.prompt),
        requested_outputs=op.max_new_tokens,
        status="ok",
        started=0.0,
        ended=0.0,
        output_ids=op.output_ids or (),
        prompt_tokens=op.prompt_tokens,
        cached_tokens=cached,
        split=split,
        logprob_start=op.logprob_start_len,
    )

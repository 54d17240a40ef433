"""Operations of a case: what is drawn for each kind, and the operation it makes after what was sent so far.

Draws are plain values that fit every fleet and every history (numbers are taken modulo what there is), so
that the same choices are possible in every run, whatever the workers did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

from tierfuzz.program import (
    WRITE_POLICIES,
    Attach,
    Burst,
    ClearStorage,
    Detach,
    Fill,
    FleetConfig,
    Flush,
    Generate,
    Idle,
    Restart,
    Role,
    WritePolicy,
)
from tierfuzz.prompts import Piece
from tierfuzz.strategies import prompts
from tierfuzz.strategies.prompts import Length, Outputs, Source

T = TypeVar("T")
NAMESPACES = ("tenant-a", "tenant-b")
LONGEST_SHARE = 6  # prompts take at most a sixth of the device pool
ProbeDraw = tuple[int, bool]
Quiet = type[Idle | Flush | Restart]
PrimeDraw = tuple[int, Source, Length, Outputs]
NamespacedDraw = tuple[int, int, Length, Outputs, str]
FillDraw = tuple[int, float, float, int]
ForkDraw = tuple[int, int, int, Outputs]
GrowDraw = tuple[int, int, Outputs]
CrowdDraw = tuple[int, int, Outputs]
RefetchDraw = tuple[int, Outputs, float | None]
MemberDraw = tuple[bool, int, Length, Outputs, float | None]
StorageDraw = tuple[int, str, WritePolicy]
LateDraw = tuple[PrimeDraw, int, bool]
Renewal = type[Flush | Restart]
StorageChange = Flush | ClearStorage | Attach | Detach

PICKS = st.integers(0, 255)
PROBES = st.tuples(PICKS, st.booleans())  # which, and whether to cut it to whole pages
WORKERS = st.integers(0, 63)
PRIMES = st.tuples(WORKERS, prompts.SOURCES, prompts.LENGTHS, prompts.OUTPUTS)
NAMESPACED = st.tuples(WORKERS, prompts.SHARED, prompts.LENGTHS, prompts.OUTPUTS, st.sampled_from(NAMESPACES))
FILLS = st.tuples(
    WORKERS,
    st.sampled_from((1.0, 1.0, 1.2, 0.6)),
    st.sampled_from((0.125, 0.1, 0.14)),
    st.sampled_from((0, 0, 2)),
)
FORKS = st.tuples(PICKS, prompts.SIZES, prompts.SIZES, prompts.OUTPUTS)
GROWS = st.tuples(PICKS, prompts.SIZES, prompts.OUTPUTS)
MEMBERS = st.tuples(
    st.booleans(), PICKS, prompts.LENGTHS, prompts.OUTPUTS, st.sampled_from((None, None, None, 0.0, 0.001))
)
CROWDS = st.lists(st.tuples(PICKS, prompts.SIZES, prompts.OUTPUTS), min_size=2, max_size=4)
ABORTS = st.sampled_from((None, 0.0, 0.0, 0.001))  # while a read from storage may go on
REFETCHES = st.lists(st.tuples(PICKS, prompts.OUTPUTS, ABORTS), min_size=2, max_size=3)
BURSTS = st.tuples(WORKERS, st.lists(MEMBERS, min_size=2, max_size=4))
STORAGE = st.tuples(
    WORKERS,
    st.sampled_from((*["flush"] * 6, "clear", "detach", "attach")),
    st.sampled_from(WRITE_POLICIES),
)
LATE = st.tuples(PRIMES, prompts.SIZES, st.sampled_from((False, False, True)))  # the last: with a replay
RESTARTS = st.sampled_from((True, *[False] * 5))
RENEWALS: st.SearchStrategy[Renewal] = st.sampled_from((Flush, Restart))
# A restart takes as long as hundreds of requests.
QUIETS: st.SearchStrategy[Quiet] = st.sampled_from((*[Idle] * 17, *[Flush] * 12, Restart))


def longest(fleet: FleetConfig) -> int:
    """Longest fresh prompt in tokens."""
    return max(2 * fleet.page_size, fleet.device_tokens // LONGEST_SHARE)


def picked(items: Sequence[T], pick: int) -> T:
    """One of the items."""
    return items[pick % len(items)]


def prime(fleet: FleetConfig, name: str, draw: PrimeDraw) -> Generate:
    """First use of a prefix, sometimes of a shared stream."""
    worker, source, length, outputs = draw
    pieces = prompts.prompt_of(source, f"p-{name}", _length(fleet, length))
    return Generate(name, worker % fleet.places, pieces, _outputs(fleet, outputs), "prime")


def namespaced(fleet: FleetConfig, name: str, draw: NamespacedDraw) -> Generate:
    """A shared prompt under a namespace."""
    worker, source, length, outputs, namespace = draw
    pieces = prompts.prompt_of(source, "", _length(fleet, length))
    wanted = _outputs(fleet, outputs)
    return Generate(name, worker % fleet.places, pieces, wanted, "namespaced", namespace)


def fill(fleet: FleetConfig, name: str, draw: FillDraw) -> Fill:
    """Traffic that turns the device pool of one worker over, or most of it."""
    worker, share, prompt_share, outputs = draw
    return Fill(name, worker % fleet.places, f"f-{name}", share, prompt_share, outputs)


def fill_host(fleet: FleetConfig, name: str, worker: int) -> Fill:
    """Traffic that turns host and device of one worker over."""
    return Fill(name, worker, f"f-{name}", share=fleet.host_ratio + 1, prompt_share=0.25)


def again(generate: Generate, name: str, role: Role) -> Generate:
    """The same prompt, namespace and outputs under another id and role."""
    return Generate(name, generate.worker, generate.prompt, generate.outputs, role, generate.namespace)


def fork(fleet: FleetConfig, sent: Sequence[Generate], name: str, draw: ForkDraw) -> Generate:
    """A prompt that shares a part of an earlier one: splits a node."""
    pick, at, tail, outputs = draw
    origin = picked(sent, pick)
    pieces = prompts.fork(origin.prompt, f"x-{name}", fleet.page_size, at, tail)
    wanted = _outputs(fleet, outputs)
    return Generate(name, origin.worker, pieces, wanted, "fork", origin.namespace)


def branch_and_twig(fleet: FleetConfig, name: str, draw: ForkDraw) -> tuple[Generate, Generate]:
    """Two new prompts of which the second splits the node of the first: each goes on where they part, the
    second for as much as is worth a fetch from storage."""
    worker, at, tail, outputs = draw
    page, wanted = fleet.page_size, _outputs(fleet, outputs)
    least = max(1, -(-min(fleet.storage_threshold, longest(fleet)) // page))
    pages = 1 + least + at % max(1, longest(fleet) // page - least)
    branch = (Piece(f"b-{name}", 0, pages * page + 1),)
    twig = prompts.twig(branch, f"x-{name}", page, at, least * page + 1 + tail % page)
    first = Generate(f"{name}.0", worker % fleet.workers, branch, wanted)
    return first, Generate(name, worker % fleet.workers, twig, wanted, "fork")


def grow(fleet: FleetConfig, growable: Sequence[Generate], name: str, draw: GrowDraw) -> Generate:
    """A conversation goes on: a prompt, its answer, and a new turn."""
    pick, size, outputs = draw
    base = picked(growable, pick)
    turn = Piece(f"t-{name}", 0, 1 + size % (fleet.page_size + 2))
    pieces = (*base.prompt, Piece(f"@{base.id}", 0, base.outputs), turn)
    return Generate(name, base.worker, pieces, _outputs(fleet, outputs), "grow", base.namespace)


def burst(
    fleet: FleetConfig, sent: Sequence[Generate], name: str, worker: int, members: Sequence[MemberDraw]
) -> Burst:
    """Requests together on one worker, some of them aborted: as sent before, and otherwise of shared streams,
    or all of one new stream, so that they cut one another's nodes while those are being copied."""
    new = members[0][1] % 2 == 0

    def member(number: int, draw: MemberDraw) -> Generate:
        repeated, pick, length, outputs, abort = draw
        source = None if new else pick // 2 % prompts.SHARED_STREAMS
        pieces = prompts.prompt_of(source, f"b-{name}", _length(fleet, length))
        if repeated and sent:
            pieces = picked(sent, pick).prompt
        wanted = _abortable(fleet, _outputs(fleet, outputs), abort)
        return Generate(f"{name}.{number}", worker % fleet.places, pieces, wanted, abort_after_s=abort)

    return Burst(name, tuple(member(number, draw) for number, draw in enumerate(members)))


def crowd(fleet: FleetConfig, sent: Sequence[Generate], name: str, draws: Sequence[CrowdDraw]) -> Burst:
    """Requests that go on from earlier prompts of one worker, each to a quarter of its device pool or more:
    together they want about all of it, or more."""
    worker, known = _of_one_worker(sent, draws[0][0])

    def member(number: int, draw: CrowdDraw) -> Generate:
        pick, size, outputs = draw
        origin, wanted = picked(known, pick), 2 * fleet.page_size + _outputs(fleet, outputs)
        quarter = fleet.device_tokens // 4
        most = fleet.device_tokens - wanted - 2 * fleet.page_size  # what an engine may ever admit
        pieces = (*origin.prompt, Piece(f"c-{name}.{number}", 0, fleet.device_tokens))
        prompt = prompts.cut(pieces, max(1, min(most, quarter + size % (2 * quarter))))
        return Generate(f"{name}.{number}", worker, prompt, wanted, namespace=origin.namespace)

    return Burst(name, tuple(member(number, draw) for number, draw in enumerate(draws)))


def refetch(fleet: FleetConfig, sent: Sequence[Generate], name: str, draws: Sequence[RefetchDraw]) -> Burst:
    """Earlier prompts of one worker again, together, some of them aborted: those worth a fetch, if any."""
    worker, known = _of_one_worker(sent, draws[0][0])
    known = [g for g in known if prompts.length_of(g.prompt) > fleet.storage_threshold] or known

    def member(number: int, draw: RefetchDraw) -> Generate:
        pick, outputs, abort = draw
        origin, wanted = picked(known, pick), _abortable(fleet, _outputs(fleet, outputs), abort)
        prompt, namespace = origin.prompt, origin.namespace
        return Generate(f"{name}.{number}", worker, prompt, wanted, "prime", namespace, None, abort)

    return Burst(name, tuple(member(number, draw) for number, draw in enumerate(draws)))


def longer(fleet: FleetConfig, base: Generate, name: str, size: int) -> Generate:
    """A prompt with one or two more pages, whatever was answered."""
    more = Piece(f"l-{name}", 0, fleet.page_size + size % fleet.page_size + 1)
    return Generate(name, base.worker, (*base.prompt, more), 1, "grow", base.namespace)


def storage_control(fleet: FleetConfig, name: str, draw: StorageDraw) -> StorageChange:
    """Changes of the storage tier, and flushes, after which storage is asked; other policies only where
    that leaves no gaps on host (B3)."""
    number, kind, policy = draw
    worker = number % fleet.places
    if kind == "flush":
        return Flush(name, worker)
    if kind == "clear":
        return ClearStorage(name, worker)
    if kind == "detach":
        return Detach(name, worker)
    gaps = "write_back" in (fleet.policy, policy)
    return Attach(name, worker, fleet.policy if gaps else policy)


def _of_one_worker(sent: Sequence[Generate], pick: int) -> tuple[int, list[Generate]]:
    """The worker of an earlier request, and all requests of that worker."""
    worker = picked(sent, pick).worker
    return worker, [generate for generate in sent if generate.worker == worker]


def _abortable(fleet: FleetConfig, outputs: int, abort: float | None) -> int:
    """Outputs to ask for: of a request that is aborted enough to be caught running."""
    return outputs if abort is None else max(outputs, 2 * fleet.page_size)


def _length(fleet: FleetConfig, length: Length) -> int:
    tokens: int = prompts.tokens_in(length, fleet.page_size, longest(fleet))
    return tokens


def _outputs(fleet: FleetConfig, outputs: Outputs) -> int:
    tokens: int = prompts.outputs_in(outputs, fleet.page_size)
    return tokens

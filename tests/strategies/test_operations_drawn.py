"""Operations as drawn: they fit any fleet and any history, and every kind of value can occur."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tierfuzz.program import (
    Attach,
    Burst,
    FleetConfig,
    Flush,
    Generate,
    Idle,
    Program,
    Restart,
    dump_program,
    load_program,
)
from tierfuzz.prompts import Piece
from tierfuzz.strategies import operations as ops
from tierfuzz.strategies import prompts

FLEETS = st.builds(
    FleetConfig, workers=st.integers(1, 5), page_size=st.sampled_from((4, 16)), device_tokens=st.just(512)
)
SENT = (
    Generate("op0", 0, (Piece("A", 0, 33),), 3),
    Generate("op1", 0, (Piece("B", 0, 7),), 1, namespace="tenant-a"),
)


def fits(fleet: FleetConfig, generate: Generate) -> None:
    """The request can be sent to this fleet."""
    assert 0 <= generate.worker < fleet.workers
    assert prompts.length_of(generate.prompt) >= 1
    assert generate.outputs >= 0


@given(FLEETS, ops.PRIMES, ops.NAMESPACED)
def test_fresh_requests_fit_the_fleet(
    fleet: FleetConfig, prime: ops.PrimeDraw, namespaced: ops.NamespacedDraw
) -> None:
    made = (ops.prime(fleet, "op9", prime), ops.namespaced(fleet, "op9", namespaced))
    for generate in made:
        fits(fleet, generate)
        assert prompts.length_of(generate.prompt) <= ops.longest(fleet)
    assert made[0].namespace is None
    assert made[1].namespace in ops.NAMESPACES


@given(FLEETS, ops.FILLS)
def test_a_filler_has_a_stream_of_its_own(fleet: FleetConfig, draw: ops.FillDraw) -> None:
    first, second = ops.fill(fleet, "op1", draw), ops.fill(fleet, "op2", draw)
    assert 0 <= first.worker < fleet.workers
    assert first.stream != second.stream


@given(FLEETS, ops.FORKS, ops.GROWS)
def test_requests_that_come_back_stay_with_their_worker_and_namespace(
    fleet: FleetConfig, fork: ops.ForkDraw, grow: ops.GrowDraw
) -> None:
    forked, grown = ops.fork(fleet, SENT, "op9", fork), ops.grow(fleet, SENT, "op9", grow)
    origin, base = ops.picked(SENT, fork[0]), ops.picked(SENT, grow[0])
    assert (forked.worker, forked.namespace) == (origin.worker, origin.namespace)
    assert (grown.worker, grown.namespace) == (base.worker, base.namespace)
    assert grown.prompt[: len(base.prompt)] == base.prompt
    assert grown.prompt[-2] == Piece(f"@{base.id}", 0, base.outputs)


@given(FLEETS, ops.FORKS, st.sampled_from((0, 16, 33, 64)))
def test_branch_and_twig_part_at_a_page_and_both_go_on(
    fleet: FleetConfig, draw: ops.ForkDraw, threshold: int
) -> None:
    fleet = replace(fleet, storage_threshold=threshold)
    page, most = fleet.page_size, ops.longest(fleet)
    branch, twig = ops.branch_and_twig(fleet, "op9", draw)
    fits(fleet, branch)
    fits(fleet, twig)
    shared, own = twig.prompt
    assert shared.start == 0
    assert shared.stop % page == 0
    assert page <= shared.stop <= prompts.length_of(branch.prompt) - page
    assert prompts.cut(branch.prompt, shared.stop) == (shared,)
    assert max(page, threshold) < len(own) <= max(page, threshold) + 2 * page
    assert threshold <= prompts.length_of(branch.prompt) <= most + 2 * page
    assert branch.worker == twig.worker
    assert branch.id != twig.id


@given(FLEETS, ops.CROWDS)
def test_a_crowd_wants_more_than_its_share_and_each_of_it_fits_alone(
    fleet: FleetConfig, draws: list[ops.CrowdDraw]
) -> None:
    made = ops.crowd(fleet, SENT, "op9", draws)
    assert 2 <= len(made.requests) <= 4
    for request, draw in zip(made.requests, draws, strict=True):
        fits(fleet, request)
        origin, length = ops.picked(SENT, draw[0]), prompts.length_of(request.prompt)
        assert (request.worker, request.namespace) == (0, origin.namespace)
        assert prompts.cut(request.prompt, prompts.length_of(origin.prompt)) == origin.prompt
        assert length >= fleet.device_tokens // 4
        assert length + request.outputs + 2 * fleet.page_size <= fleet.device_tokens


@given(FLEETS, ops.REFETCHES)
def test_what_is_fetched_again_was_sent_to_that_worker(
    fleet: FleetConfig, draws: list[ops.RefetchDraw]
) -> None:
    made = ops.refetch(fleet, SENT, "op9", draws)
    assert len({request.id for request in made.requests}) == len(draws)
    for request, (pick, _, abort) in zip(made.requests, draws, strict=True):
        origin = ops.picked(SENT, pick)
        assert (request.prompt, request.namespace, request.worker) == (origin.prompt, origin.namespace, 0)
        assert request.abort_after_s == abort
        assert abort is None or request.outputs >= 2 * fleet.page_size  # long enough to be caught


@given(FLEETS, ops.BURSTS, st.sampled_from(((), SENT)))
def test_a_burst_is_of_one_worker_with_an_id_each(
    fleet: FleetConfig, draw: tuple[int, list[ops.MemberDraw]], sent: tuple[Generate, ...]
) -> None:
    made: Burst = ops.burst(fleet, sent, "op9", *draw)
    assert 2 <= len(made.requests) <= 4
    assert len({request.worker for request in made.requests}) == 1
    assert len({request.id for request in made.requests}) == len(made.requests)
    for request in made.requests:
        fits(fleet, request)
        if request.abort_after_s is not None:
            assert request.outputs >= 2 * fleet.page_size, "long enough to be caught running"


def test_members_of_a_burst_repeat_what_was_sent_or_share_a_stream() -> None:
    members: list[ops.MemberDraw] = [
        (True, 2, (9, None), (0, 1), 0.0),
        (False, 5, (9, None), (0, 1), None),
    ]
    repeated, new = ops.burst(FleetConfig(), SENT, "op9", 1, members).requests
    assert (repeated.prompt, repeated.abort_after_s) == (SENT[0].prompt, 0.0)
    assert (new.prompt, new.abort_after_s) == ((Piece("b-op9", 0, 10),), None)
    assert repeated.worker == new.worker == 1
    shared = ops.burst(FleetConfig(), SENT, "op9", 1, members[1:] * 2).requests
    assert [one.prompt for one in shared] == [(Piece("s2", 0, 10),)] * 2
    with_nothing_sent = ops.burst(FleetConfig(), (), "op9", 1, members).requests[0]
    assert with_nothing_sent.prompt == (Piece("b-op9", 0, 10),)


def test_a_restart_is_rare_but_possible() -> None:
    drawn: Counter[ops.Quiet] = Counter()

    @settings(max_examples=400, database=None, derandomize=True)
    @given(ops.QUIETS)
    def draw(kind: ops.Quiet) -> None:
        drawn[kind] += 1

    draw()
    assert 0 < drawn[Restart] < drawn[Flush] < drawn[Idle]


@pytest.mark.parametrize("policy", ["write_through", "write_back", "write_through_selective"])
def test_storage_never_mixes_write_back_with_another_policy(policy: ops.WritePolicy) -> None:
    @given(ops.STORAGE)
    def attached(draw: ops.StorageDraw) -> None:
        made = ops.storage_control(FleetConfig(policy=policy), "op9", draw)
        if isinstance(made, Attach):
            assert (made.policy == "write_back") == (policy == "write_back")

    attached()


@given(FLEETS, ops.PRIMES, ops.FILLS, ops.FORKS, ops.BURSTS)
def test_what_is_drawn_is_a_program_on_disk(
    tmp_path_factory: pytest.TempPathFactory,
    fleet: FleetConfig,
    prime: ops.PrimeDraw,
    fill: ops.FillDraw,
    fork: ops.ForkDraw,
    burst: tuple[int, list[ops.MemberDraw]],
) -> None:
    made = (
        ops.prime(fleet, "op0", prime),
        ops.fill(fleet, "op1", fill),
        ops.fork(fleet, SENT, "op2", fork),
        ops.burst(fleet, SENT, "op3", *burst),
    )
    path = tmp_path_factory.getbasetemp() / "drawn.json"
    path.write_bytes(dump_program(Program(fleet, made)))
    assert load_program(path) == Program(fleet, made)


@given(FLEETS)
def test_a_filler_of_the_host_turns_host_and_device_over(fleet: FleetConfig) -> None:
    filler = ops.fill_host(fleet, "op9", 1)
    assert (filler.worker, filler.stream) == (1, "f-op9")
    assert filler.share * fleet.device_tokens >= fleet.host_tokens

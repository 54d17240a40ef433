"""What the strategies draw is legal: prompts inside their bounds, forks that share, fleets that can start."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tierfuzz.model.config import EngineConfig
from tierfuzz.program import Burst, Fill, FleetConfig, Generate
from tierfuzz.prompts import Piece, tokens_of
from tierfuzz.strategies import fleets, operations, prompts

FLEET = FleetConfig(host_ratio=3.0)
PIECES = (Piece("A", 0, 40), Piece("B", 3, 60))


@given(st.sampled_from((1, 4, 16, 64)), st.integers(64, 400), st.data())
def test_lengths_stay_inside_their_bounds(page: int, most: int, data: st.DataObject) -> None:
    assert 1 <= data.draw(prompts.lengths(page, most)) <= most


@given(st.integers(1, 97))
def test_a_cut_is_a_prefix(length: int) -> None:
    assert tokens_of(prompts.cut(PIECES, length)) == tokens_of(PIECES)[:length]


@given(prompts.forks(PIECES, "X", 16))
def test_a_fork_shares_a_prefix_and_then_differs(forked: tuple[Piece, ...]) -> None:
    own, base = tokens_of(forked), tokens_of(PIECES)
    shared = prompts.length_of(forked[:-1])
    assert own[:shared] == base[:shared]
    assert forked[-1].stream == "X"


def test_an_exact_prompt_is_whole_pages() -> None:
    assert prompts.length_of(prompts.exact(PIECES, 16)) == 96
    assert prompts.exact((Piece("A", 0, 5),), 16) == ()


@given(operations.primes(FLEET, "op1"), operations.fillers(FLEET, "op2"))
def test_requests_fit_into_the_device_pool(prime: Generate, fill: Fill) -> None:
    assert prompts.length_of(prime.prompt) + prime.outputs < FLEET.device_tokens // 2
    assert 0 <= prime.worker < FLEET.workers
    assert fill.share * FLEET.device_tokens >= FLEET.page_size


@given(operations.bursts(FLEET, (), "op3"))
def test_a_burst_is_on_one_worker_with_names_of_its_own(burst: Burst) -> None:
    assert len({request.worker for request in burst.requests}) == 1
    assert len({request.id for request in burst.requests}) == len(burst.requests) >= 2
    aborted = [request for request in burst.requests if request.abort_after_s is not None]
    assert all(request.outputs >= 2 * FLEET.page_size for request in aborted)


@given(fleets.fleets())
@settings(max_examples=50)
def test_fleets_are_configurations_that_the_engine_takes(fleet: FleetConfig) -> None:
    config = EngineConfig(fleet.page_size, fleet.device_tokens, fleet.host_tokens, fleet.policy)
    assert config.host_pages > 0

"""All drivers together against a live simulated worker of each wire form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest

from tierfuzz.clock import SYSTEM_CLOCK
from tierfuzz.engines.base import Launch
from tierfuzz.engines.registry import driver_for
from tierfuzz.events import AllBlocksCleared, Batch, BlockStored, Tier
from tierfuzz.observation import TierSplit
from tierfuzz.program import FleetConfig
from tierfuzz.prompts import Piece, text_of, tokens_of
from tierfuzz.worker.http import Call, OpenAiCall, WorkerClient
from tierfuzz.worker.ports import reserve_ports
from tierfuzz.worker.process import WorkerProcess
from tierfuzz.worker.readiness import wait_until_healthy
from tierfuzz.worker.rest import RestResult, settle
from tierfuzz.worker.subscriber import EventSubscriber

BOUND_S = 20.0
DRIVER = driver_for("sim")
PROFILES = ["default", "sglang-0.5.17", "sglang-0.5.23"]


@dataclass
class Live:
    """One worker and its drivers."""

    launch: Launch
    process: WorkerProcess
    client: WorkerClient
    subscriber: EventSubscriber

    def settle(self, bound_s: float = BOUND_S) -> RestResult:
        """Wait for rest."""
        return settle(self.client, self.subscriber, SYSTEM_CLOCK, bound_s, DRIVER.confirmations)

    def events(self) -> list[Batch]:
        """Rest, then every batch that is in hand."""
        assert self.settle().at_rest
        return self.subscriber.drain()


@pytest.fixture(scope="module", params=PROFILES)
def started(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A healthy worker."""
    config, log = FleetConfig(profile=request.param), tmp_path_factory.mktemp("live") / "log"
    with reserve_ports(DRIVER.ports_needed) as ports:
        launch = DRIVER.launch(config, 0, ports.numbers)
        with (
            WorkerProcess(launch.command, log, launch.env) as process,
            closing(WorkerClient(launch.base_url, SYSTEM_CLOCK, launch.api_key)) as client,
            closing(subscriber_of(launch)) as subscriber,
        ):
            info = wait_until_healthy(process, client, SYSTEM_CLOCK, BOUND_S)
            capacities = DRIVER.capacities(info)
            assert (capacities.page_size, capacities.device_tokens) == (16, 1024)
            assert capacities.host_tokens == config.host_tokens
            yield Live(launch, process, client, subscriber)


@pytest.fixture
def live(started: Live) -> Live:
    """The same worker, emptied, with every event so far taken."""
    assert started.client.flush(BOUND_S)
    started.events()
    assert started.subscriber.take_findings() == []
    return started


def subscriber_of(launch: Launch) -> EventSubscriber:
    """A subscriber that joins now."""
    return EventSubscriber(launch.events_endpoint, launch.replay_endpoint, topic=launch.topic)


def prompt(stream: str, length: int) -> tuple[int, ...]:
    """Tokens of a stream."""
    return tokens_of((Piece(stream, 0, length),))


def stored(batches: list[Batch], tier: Tier) -> int:
    """Blocks stored in a tier."""
    events = [event for batch in batches for event in batch.events]
    return sum(len(e.hashes) for e in events if isinstance(e, BlockStored) and e.tier is tier)


def test_requests_events_rest_metrics_and_flush_agree(live: Live) -> None:
    known = live.subscriber.last_seq
    first = live.client.generate(Call("r0", prompt("a", 65), 2))
    again = live.client.generate(Call("r1", prompt("a", 65), 2))
    assert (first.cached_tokens, again.split) == (0, TierSplit(device=64))
    batches = live.events()
    assert [batch.seq for batch in batches] == list(range(known + 1, live.subscriber.last_seq + 1))
    assert stored(batches, Tier.DEVICE) == stored(batches, Tier.HOST) == 4
    assert live.client.metrics()["sglang:hicache_host_used_tokens"] == 64
    assert live.client.flush(BOUND_S)
    assert live.events()[-1].events[-1] == AllBlocksCleared()
    assert live.client.metrics()["sglang:hicache_host_used_tokens"] == 0
    assert live.subscriber.take_findings() == []


def test_a_late_subscriber_has_the_same_batches(live: Live) -> None:
    live.client.generate(Call("r0", prompt("a", 33), 2))
    ours = live.events()
    with closing(subscriber_of(live.launch)) as late:
        assert late.sync(BOUND_S) == ours[-1].seq
        theirs = late.drain()
        assert theirs[0].seq == 0
        assert theirs[0].events == (AllBlocksCleared(),)
        assert [(batch.seq, batch.ts, batch.events) for batch in theirs[-len(ours) :]] == [
            (batch.seq, batch.ts, batch.events) for batch in ours
        ]
        assert all(batch.replayed for batch in theirs)


def test_held_copies_are_no_rest_and_released_ones_are(live: Live) -> None:
    DRIVER.hold(live.client)
    live.client.generate(Call("r0", prompt("a", 33), 1))
    result = live.settle(0.1)
    assert (result.at_rest, result.reason) == (False, "the scheduler was not idle within the bound")
    assert live.client.idle() is False
    assert not live.client.flush(0.0)
    DRIVER.release(live.client)
    assert stored(live.events(), Tier.HOST) == 2
    assert live.client.idle() is True


def test_a_burst_and_an_abort(live: Live) -> None:
    calls = [Call(f"r{n}", prompt(f"s{n}", 33), 4) for n in range(8)]
    assert [answer.status for answer in live.client.generate_many(calls)] == ["ok"] * 8
    endless = Call("endless", prompt("a", 17), 900, abort_after_s=0.0)
    (answer,) = live.client.generate_many([endless])
    assert answer.status in ("aborted", "ok")  # an abort may come before its request, or after its end
    assert live.settle().at_rest


def test_forced_outputs_are_given(live: Live) -> None:
    answer = live.client.generate(Call("r0", prompt("a", 20), 3, forced_outputs=(7, 8, 9)))
    assert answer.output_ids == (7, 8, 9)


def test_namespaces_do_not_share(live: Live) -> None:
    answers = [live.client.generate(Call(f"r{n}", prompt("a", 33), 0, namespace=n)) for n in "aba"]
    assert [answer.cached_tokens for answer in answers] == [0, 0, 32]


@pytest.mark.parametrize("chat", [False, True])
def test_the_openai_endpoints_tell_the_same_split_whole_and_streamed(live: Live, chat: bool) -> None:
    tokens = prompt("a", 65)
    body = text_of(tokens) if chat else tokens
    live.client.openai(OpenAiCall(body, 3, chat=chat))
    whole = live.client.openai(OpenAiCall(body, 3, chat=chat))
    streamed = live.client.openai(OpenAiCall(body, 3, chat=chat, stream=True))
    assert whole == streamed
    assert (whole.split, whole.completion_tokens, whole.finish) == (TierSplit(device=64), 3, "length")
    assert len(whole.text.split()) == 3


def test_a_killed_worker_is_unreachable_and_starts_again_at_its_address(live: Live) -> None:
    before = live.client.generate(Call("r0", prompt("a", 33), 1))
    assert live.settle().at_rest
    live.process.kill()
    assert live.client.generate(Call("r1", prompt("a", 33), 1)).failure == "unreachable"
    live.subscriber.expect_restart()
    live.process.start()
    wait_until_healthy(live.process, live.client, SYSTEM_CLOCK, BOUND_S)
    live.subscriber.drain()
    after = live.client.generate(Call("r2", prompt("a", 33), 1))
    assert (after.output_ids, after.cached_tokens) == (before.output_ids, 0)
    batches = live.events()
    assert stored(batches, Tier.DEVICE) == 2
    assert live.subscriber.take_findings() == []

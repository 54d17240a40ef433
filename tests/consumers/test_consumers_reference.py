"""The reference consumer: messages in, answers out; the tier-blind control forgets what it should not."""

from __future__ import annotations

import pytest

from tierfuzz.codec import encode_batch
from tierfuzz.consumers.base import Consumer
from tierfuzz.consumers.registry import CONSUMERS, make_consumer
from tierfuzz.errors import UsageError
from tierfuzz.events import AllBlocksCleared, Batch, BlockRemoved, BlockStored, KvEvent, Tier

SIZE = 4
TOKENS = tuple(page for page in (1, 2, 3) for _ in range(SIZE))
NAMES = (101, 102, 103)


def stored(pages: int = 3, medium: str = "GPU") -> BlockStored:
    return BlockStored(NAMES[:pages], None, TOKENS[: pages * SIZE], SIZE, medium)


class Wire:
    """Numbers the messages of one worker, and answers wishes unless it is deaf."""

    def __init__(self, consumer: Consumer, worker: int = 0, deaf: bool = False) -> None:
        self.consumer, self.worker, self.deaf = consumer, worker, deaf
        self.sent: list[bytes] = []
        consumer.register(worker, SIZE)
        self.send(AllBlocksCleared())

    def send(self, *events: KvEvent, lost: bool = False) -> None:
        seq = len(self.sent)
        self.sent.append(encode_batch(Batch(seq, float(seq + 100 * self.worker), 0, events)))
        if not lost:
            self.consumer.deliver(self.worker, 0, seq, self.sent[seq])
        self.answer()

    def answer(self) -> None:
        for _ in range(4):
            for worker, rank, first in self.consumer.wanted():
                for seq in [] if self.deaf else range(first, len(self.sent)):
                    self.consumer.deliver(worker, rank, seq, self.sent[seq])


def test_host_copies_survive_the_device_turnover() -> None:
    consumer = make_consumer("reference")
    wire = Wire(consumer)
    wire.send(stored())
    wire.send(stored(medium="CPU_PINNED"))
    wire.send(BlockRemoved(NAMES, "GPU"))
    assert consumer.overlap(TOKENS) == {(0, 0): {Tier.HOST: 3}}
    assert consumer.overlap(TOKENS[:SIZE] + (9,) * SIZE) == {(0, 0): {Tier.HOST: 1}}


def test_the_tier_blind_control_forgets_them() -> None:
    consumer = make_consumer("tier-blind")
    wire = Wire(consumer)
    wire.send(stored(), stored(medium="CPU_PINNED"))
    wire.send(BlockRemoved(NAMES, "GPU"))
    assert consumer.overlap(TOKENS) == {}


def test_a_lost_message_is_asked_for() -> None:
    consumer = make_consumer("reference")
    wire = Wire(consumer)
    wire.send(stored(), lost=True)
    wire.send(BlockRemoved(NAMES[2:], "GPU"))
    assert consumer.overlap(TOKENS) == {(0, 0): {Tier.DEVICE: 2}}


def test_where_a_loss_cannot_be_repaired_nothing_is_claimed_that_may_be_wrong() -> None:
    consumer = make_consumer("reference")
    wire = Wire(consumer, deaf=True)
    wire.send(stored())
    wire.send(BlockRemoved(NAMES, "GPU"), lost=True)
    wire.send(stored(1, "CPU_PINNED"))
    assert consumer.overlap(TOKENS) == {(0, 0): {Tier.HOST: 1}}


def test_a_worker_that_started_again_has_lost_everything() -> None:
    consumer = make_consumer("reference")
    Wire(consumer).send(stored())
    consumer.deliver(0, 0, 0, encode_batch(Batch(0, 5.0, 0, (stored(1, "CPU_PINNED"),))))
    assert consumer.overlap(TOKENS) == {(0, 0): {Tier.HOST: 1}}


def test_a_late_consumer_gets_everything_by_replay() -> None:
    consumer = make_consumer("reference")
    wire = Wire(consumer)
    wire.send(stored())
    consumer.reset()
    assert consumer.overlap(TOKENS) == {}
    consumer.register(0, SIZE)
    wire.answer()
    assert consumer.overlap(TOKENS) == {(0, 0): {Tier.DEVICE: 3}}


def test_a_clear_empties_all_tiers() -> None:
    consumer = make_consumer("reference")
    wire = Wire(consumer)
    wire.send(stored(), stored(medium="CPU_PINNED"))
    wire.send(AllBlocksCleared())
    assert consumer.overlap(TOKENS) == {}


def test_a_rank_that_left_holds_nothing_and_is_not_heard() -> None:
    consumer = make_consumer("reference")
    consumer.register(0, SIZE, ranks=2)
    for rank in (0, 1):
        consumer.deliver(0, rank, 0, encode_batch(Batch(0, 0.0, rank, (stored(),))))
    consumer.deregister(0, 1)
    consumer.deliver(0, 1, 1, encode_batch(Batch(1, 0.0, 1, (stored(medium="CPU_PINNED"),))))
    assert consumer.overlap(TOKENS) == {(0, 0): {Tier.DEVICE: 3}}
    consumer.deregister(0)
    assert consumer.overlap(TOKENS) == {}


def test_routing_goes_by_pages_in_any_tier_then_by_load() -> None:
    consumer = make_consumer("reference")
    Wire(consumer, 0).send(stored(2))
    Wire(consumer, 1).send(stored(3, "CPU_PINNED"))
    Wire(consumer, 2)
    assert consumer.route(TOKENS, {0: 0.0, 1: 9.0, 2: 0.0}) == 1
    assert consumer.route(TOKENS[: 2 * SIZE], {0: 2.0, 1: 1.0}) == 1
    assert consumer.route((7,) * SIZE, {0: 2.0, 1: 1.0, 2: 0.5}) == 2
    with pytest.raises(UsageError, match="no worker to route to"):
        consumer.route(TOKENS, {5: 0.0})


def test_pages_have_the_size_that_their_worker_registered() -> None:
    consumer = make_consumer("reference")
    consumer.register(0, SIZE)
    consumer.register(1, 2 * SIZE)
    consumer.deliver(0, 0, 0, encode_batch(Batch(0, 0.0, 0, (stored(2),))))
    whole = BlockStored((7,), None, TOKENS[: 2 * SIZE], 2 * SIZE, "GPU")
    consumer.deliver(1, 0, 0, encode_batch(Batch(0, 0.0, 0, (whole,))))
    assert consumer.overlap(TOKENS) == {(0, 0): {Tier.DEVICE: 2}, (1, 0): {Tier.DEVICE: 1}}


def test_an_unknown_consumer_is_refused() -> None:
    with pytest.raises(UsageError, match=r"unknown consumer 'smart'; expected one of: reference, tier-blind"):
        make_consumer("smart")
    assert {make_consumer(name).name for name in CONSUMERS} == set(CONSUMERS)

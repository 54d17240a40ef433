"""Live consumers: what was delivered is proven by a marker, and numbers on the wire have room for markers."""

from __future__ import annotations

import pytest
from listening import Listening

from tierfuzz.events import Tier
from tierfuzz.hashing import page_hashes
from tierfuzz.orders.causality import discipline_of
from tierfuzz.orders.check import check
from tierfuzz.orders.play import Draw, Setting, played
from tierfuzz.orders.stream import Stream
from tierfuzz.routers.base import Channel, Marker
from tierfuzz.routers.publisher import LivePublisher

SIZE = 4


def history(*happens: str) -> Stream:
    """What one worker says while these things happen to it."""
    draws = [Draw(name, 0, 1) for name in happens]
    return played(discipline_of("write_through"), Setting(page_size=SIZE), draws)


@pytest.fixture
def channel() -> Channel:
    publisher = LivePublisher()
    publisher.close()  # numbers need no socket
    return Channel(publisher, SIZE)


def test_a_right_consumer_is_asked_when_it_has_heard_everything() -> None:
    trial = check(history("insert", "back-up", "evict-device", "load-back", "clear", "insert"), Listening)
    assert trial.findings == []
    assert trial.comparisons >= 6


def test_who_does_not_hear_any_more_is_deaf() -> None:
    stream = history("insert", "back-up")
    (finding,) = check(stream, lambda: Listening(deaf_from=4, patience_s=0.1), kind="deaf").findings
    assert (finding.kind, finding.entry, finding.source) == ("deaf", 1, (0, 0))


def test_markers_come_between_the_numbers_of_a_caller(channel: Channel) -> None:
    assert channel.number(0, b"clear") == 0
    channel.last += 1  # a marker
    assert channel.number(1, b"one") == 2
    assert channel.number(1, b"one") == 2  # a repeat
    assert channel.number(4, b"four") == 5  # two were lost, as they are on the wire
    channel.last += 1
    assert channel.number(0, b"clear again") == 0  # another process
    assert channel.number(1, b"one") == 1


def test_a_marker_is_a_chain_of_its_own_in_each_tier() -> None:
    marker = Marker({Tier.DEVICE: (1,) * SIZE, Tier.HOST: (2,) * SIZE})
    device, host = marker.events(SIZE)
    assert (device.tier, host.tier) == (Tier.DEVICE, Tier.HOST)
    assert (device.parent, host.parent) == (None, None)
    assert host.hashes == page_hashes((2,) * SIZE, SIZE)

"""The event sockets of a live worker: frames, payload bytes, sequence numbers, replay."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq
from sim_process import BOUND_S, DEVICE, END, PAGE, Sim, events_config, running, short, tokens

RAW = Path(__file__).parents[1] / "recordings" / "raw-payloads.json"
FIRST_HASHES = (7595355333618146164, -7499255575317279893)  # of stream A, recordings' README 3


@pytest.fixture(scope="module")
def worker() -> Iterator[Sim]:
    """One worker for the module."""
    with running() as sim:
        yield sim


@pytest.fixture
def sim(worker: Sim) -> Sim:
    """The worker, empty."""
    assert worker.flush() == 200
    return worker


def newest(sim: Sim) -> int:
    """Sequence number of the newest batch."""
    return int.from_bytes(sim.replayed()[-1][-2], "big")


def since(sim: Sim, ids: list[int], outputs: int = 0) -> list[list[Any]]:
    """All events of one request, up to rest."""
    start = newest(sim) + 1
    sim.generate(ids, outputs)
    sim.rest()
    return sim.happened(start)


def test_batch_0_is_a_clear_and_sequence_numbers_have_no_gap() -> None:
    before = time.time()
    with running() as fresh:
        fresh.generate(tokens("a", 2 * PAGE))
        fresh.rest()
        batches = fresh.replayed()
        assert [frames[:2] for frames in batches] == [
            [b"", n.to_bytes(8, "big")] for n in range(len(batches))
        ]
        stamp, events, rank = msgspec.msgpack.decode(batches[0][2])
        assert (events, rank) == ([["AllBlocksCleared"]], 0)
        assert before <= stamp <= time.time()


def test_live_frames_are_topic_sequence_and_the_same_payload_as_replayed(sim: Sim) -> None:
    with sim.context.socket(zmq.SUB) as live:
        live.setsockopt(zmq.LINGER, 0)
        live.subscribe(b"kv-events")
        live.connect(sim.events)
        while not live.poll(20):  # a subscriber misses what was sent before it had joined
            assert sim.flush() == 200
        sim.generate(tokens("a", 2 * PAGE), 3)
        sim.rest()
        last = newest(sim)
        frames: list[list[bytes]] = []
        while not frames or int.from_bytes(frames[-1][1], "big") < last:
            assert live.poll(int(BOUND_S * 1000))
            frames.append(live.recv_multipart())
    assert {frame[0] for frame in frames} == {b"kv-events"}
    assert [frame[1:] for frame in frames] == [
        f[1:] for f in sim.replayed(int.from_bytes(frames[0][1], "big"))
    ]


def test_stores_have_the_recorded_hashes_tokens_and_parents(sim: Sim) -> None:
    events = since(sim, tokens("A", 2 * PAGE + 3))
    first, second = FIRST_HASHES
    pages = [tokens("A", PAGE), tokens("A", 2 * PAGE, PAGE)]
    assert events == [
        ["BlockStored", [first], None, pages[0], PAGE, None, "GPU"],
        ["BlockStored", [second], first, pages[1], PAGE, None, "GPU"],
        ["BlockStored", [first], None, pages[0], PAGE, None, "CPU_PINNED"],
        ["BlockStored", [second], first, pages[1], PAGE, None, "CPU_PINNED"],
    ]


def test_payloads_are_byte_for_byte_those_of_the_engine() -> None:
    recorded = json.loads(RAW.read_text())["write_through-p16"]
    first = next(
        m
        for m in recorded
        if msgspec.msgpack.decode(base64.b64decode(m["payload_b64"]))[1][0][0] == "BlockStored"
    )
    wanted = base64.b64decode(first["payload_b64"])
    with running("--sim-profile=sglang-0.5.17") as fresh:
        fresh.generate(tokens("A", 16 * PAGE + 1))  # op 1 of every recording
        fresh.rest()
        payload = fresh.replayed(1)[0][2]
    assert wanted[:2] == payload[:2] == b"\x93\xcb"
    assert payload[10:] == wanted[10:]  # all but the 8 bytes of the time stamp


def test_device_removals_name_a_node_and_come_after_the_host_stores(sim: Sim) -> None:
    since(sim, tokens("a", 3 * PAGE))
    events = since(sim, tokens("f", DEVICE - 2 * PAGE))
    removed = [event for event in events if event[0] == "BlockRemoved"]
    assert [(len(event[1]), event[2]) for event in removed] == [(3, "GPU")]
    assert short(events) == ["R GPU"] + ["S GPU"] * 62 + ["S CPU"] * 62


def test_write_back_stores_on_host_only_what_leaves_the_device() -> None:
    with running("--hicache-write-policy=write_back") as sim:
        assert short(since(sim, tokens("a", 3 * PAGE))) == ["S GPU"] * 3
        events = short(since(sim, tokens("f", DEVICE - 2 * PAGE)))
        assert events == ["R GPU"] + ["S CPU"] * 3 + ["S GPU"] * 62


def test_a_load_back_announces_the_pages_on_device_again(sim: Sim) -> None:
    prefix = tokens("a", 2 * PAGE + 1)
    since(sim, prefix)
    for stream in "fgh":
        since(sim, tokens(stream, DEVICE // 2))
    assert short(since(sim, prefix)) == ["R GPU", "S GPU", "S GPU"]


def test_a_flush_publishes_one_clear_before_it_is_answered(sim: Sim) -> None:
    sim.generate(tokens("a", PAGE))
    assert sim.flush() == 200
    assert msgspec.msgpack.decode(sim.replayed()[-1][2])[1][-1:] == [["AllBlocksCleared"]]


def test_replay_starts_where_it_is_asked_to(sim: Sim) -> None:
    last = newest(sim)
    assert [int.from_bytes(frames[1], "big") for frames in sim.replayed(last - 1)] == [last - 1, last]
    assert sim.replayed(last + 1) == []


def test_the_replay_socket_drops_other_frame_counts_and_goes_on(sim: Sim) -> None:
    with sim.context.socket(zmq.DEALER) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(sim.replay)
        socket.send_multipart([b"one frame"])
        socket.send_multipart([b"", bytes(8), b"a third"])
        socket.send_multipart([b"", (1 << 40).to_bytes(8, "big")])
        assert socket.poll(int(BOUND_S * 1000))
        assert socket.recv_multipart() == [b"", END, b""]
        assert not socket.poll(0)


def test_a_req_socket_gets_its_first_reply(sim: Sim) -> None:
    with sim.context.socket(zmq.REQ) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(sim.replay)
        socket.send(newest(sim).to_bytes(8, "big"))
        assert socket.poll(int(BOUND_S * 1000))
        assert len(socket.recv_multipart()) == 2


def test_the_replay_buffer_keeps_the_newest_batches_only() -> None:
    config = events_config(publisher="zmq", endpoint="tcp://*:0", replay_endpoint="tcp://*:0", buffer_steps=2)
    with running(config) as sim:
        for _ in range(4):
            assert sim.flush() == 200
        assert [int.from_bytes(frames[1], "big") for frames in sim.replayed()] == [3, 4]


def test_the_newer_profile_sends_maps_and_repeats_the_topic_in_replays() -> None:
    with running("--sim-profile=sglang-0.5.23") as sim:
        sim.generate(tokens("A", 2 * PAGE))
        sim.rest()
        frames = sim.replayed()
        assert [frame[:2] for frame in frames] == [[b"", b"kv-events"]] * len(frames)
        assert msgspec.msgpack.decode(frames[0][3])[1] == [{"type": "AllBlocksCleared"}]
        store = msgspec.msgpack.decode(frames[1][3])[1][0]
        assert (store["type"], store["block_hashes"], store["medium"]) == (
            "BlockStored",
            list(FIRST_HASHES),
            "GPU",
        )


def test_an_endpoint_without_a_wildcard_is_connected_to() -> None:
    with zmq.Context() as context, context.socket(zmq.SUB) as consumer:
        consumer.setsockopt(zmq.LINGER, 0)
        consumer.subscribe(b"")
        port = consumer.bind_to_random_port("tcp://127.0.0.1")
        with running(events_config(publisher="zmq", endpoint=f"tcp://127.0.0.1:{port}")) as sim:
            while not consumer.poll(20):
                assert sim.flush() == 200
            topic, _, payload = consumer.recv_multipart()
            assert topic == b""
            assert ["AllBlocksCleared"] in msgspec.msgpack.decode(payload)[1]


def test_without_an_event_configuration_nothing_is_published() -> None:
    flags = ("--port=0", "--enable-hierarchical-cache", f"--page-size={PAGE}", f"--max-total-tokens={DEVICE}")
    with running(base=flags) as sim:
        sim.generate(tokens("a", PAGE))
        assert sim.events == ""
        assert sim.http.get("/server_info").json()["kv_events"] is None
        assert sim.http.get("/metrics").status_code == 404
        assert sim.flush() == 200


@pytest.mark.parametrize("plant", ["batch-lost", "payload-truncated"])
def test_faults_of_the_publisher_reach_the_sockets(plant: str) -> None:
    with running(f"--sim-plant={plant}") as sim:
        for _ in range(8):
            assert sim.flush() == 200
        frames = sim.replayed()
        numbers = [int.from_bytes(frame[1], "big") for frame in frames]
        if plant == "batch-lost":
            assert numbers == [0, 1, 2, 3, 4, 5, 7, 8]
            return
        assert numbers == list(range(9))
        with pytest.raises(msgspec.DecodeError):
            msgspec.msgpack.decode(frames[6][2])


def test_a_replay_that_is_cut_off_has_no_end_mark() -> None:
    with running("--sim-plant=replay-truncated") as sim, sim.context.socket(zmq.DEALER) as reader:
        for _ in range(9):
            assert sim.flush() == 200
        reader.connect(sim.replay)
        reader.send_multipart([b"", (0).to_bytes(8, "big")])
        seen = []
        for _ in range(8):
            assert reader.poll(int(BOUND_S * 1000))
            seen.append(int.from_bytes(reader.recv_multipart()[1], "big"))
        assert seen == list(range(8))
        reader.send_multipart([b"", (9).to_bytes(8, "big")])  # a short one is whole
        assert reader.poll(int(BOUND_S * 1000))
        assert [int.from_bytes(reader.recv_multipart()[1], "big"), reader.recv_multipart()[1]] == [
            9,
            b"\xff" * 8,
        ]


def test_batches_may_trail_the_reply_but_never_change_order() -> None:
    with running("--sim-publish-delay-ms=40", "--sim-seed=3") as sim:
        for stream in "abcdef":
            sim.generate(tokens(stream, 2 * PAGE))
        sim.rest()
        deadline = time.monotonic() + BOUND_S
        while len(events := sim.happened()) < 1 + 6 * 4:
            assert time.monotonic() < deadline, short(events)
        stores = [event for event in events if event[0] == "BlockStored" and event[-1] == "GPU"]
        assert [event[3][0] for event in stores[::2]] == [tokens(stream, 1)[0] for stream in "abcdef"]
        stamps = [msgspec.msgpack.decode(frame[2])[0] for frame in sim.replayed()]
        assert stamps == sorted(stamps)

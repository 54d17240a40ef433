"""The client against a server that a test writes: kept-alive, overlapping, strict, never surprised."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from test_worker_calls import REPLY
from waiting import BOUND_S
from web_server import WebServer, serving

from tierfuzz.clock import SYSTEM_CLOCK
from tierfuzz.errors import RequestFailed
from tierfuzz.observation import TierSplit
from tierfuzz.worker.http import Call, OpenAiCall, WorkerClient
from tierfuzz.worker.ports import reserve_ports

CALL = Call("r1", (1, 2, 3), 8)
ABORTED = {"output_ids": [], "meta_info": {"id": "x", "finish_reason": {"type": "abort", "message": "m"}}}


@pytest.fixture
def web() -> Iterator[WebServer]:
    """A server."""
    with serving() as server:
        yield server


@pytest.fixture
def client(web: WebServer) -> Iterator[WorkerClient]:
    """A client of it."""
    client = WorkerClient(web.base_url, SYSTEM_CLOCK, "key", BOUND_S)
    yield client
    client.close()


# requests ------------------------------------------------------------------------------------------
def test_a_request_and_its_answer(web: WebServer, client: WorkerClient) -> None:
    web.always("/generate", 200, REPLY)
    before = SYSTEM_CLOCK.monotonic()
    answer = client.generate(CALL)
    assert (answer.status, answer.cached_tokens, answer.split) == ("ok", 64, TierSplit(16, 48))
    assert before <= answer.started <= answer.ended <= SYSTEM_CLOCK.monotonic()
    (seen,) = web.seen
    assert (seen.method, seen.path) == ("POST", "/generate")
    assert seen.headers["Authorization"] == "Bearer key"
    assert seen.headers["Host"] == web.base_url.removeprefix("http://")
    assert json.loads(seen.body)["input_ids"] == [1, 2, 3]


def test_connections_are_kept_alive(web: WebServer, client: WorkerClient) -> None:
    web.always("/generate", 200, REPLY)
    for _ in range(20):
        client.generate(CALL)
    assert len({seen.peer for seen in web.seen}) == 1
    client.reconnect()
    client.generate(CALL)
    assert len({seen.peer for seen in web.seen}) == 2


def test_an_error_status_is_a_failed_answer_with_its_text(web: WebServer, client: WorkerClient) -> None:
    web.always("/generate", 400, {"error": {"message": "the input is too long"}})
    answer = client.generate(CALL)
    assert (answer.status, answer.failure) == ("failed", "http")
    assert f"{web.base_url}/generate: 400: " in answer.error
    assert "the input is too long" in answer.error


def test_an_unexpected_reply_is_a_failed_answer_that_shows_it(web: WebServer, client: WorkerClient) -> None:
    web.always("/generate", 200, {"output_ids": [1], "meta_info": {"finish_reason": {"type": "length"}}})
    answer = client.generate(CALL)
    assert (answer.status, answer.failure) == ("failed", "shape")
    assert "missing required field `meta_info.prompt_tokens`" in answer.error
    assert '"output_ids": [1]' in answer.error


def test_silence_is_a_timeout(web: WebServer, client: WorkerClient) -> None:
    heal = threading.Event()

    def hang(_: bytes) -> tuple[int, dict[str, Any]]:
        heal.wait(BOUND_S)
        return 200, REPLY

    web.answers["/generate"] = hang
    answer = client.generate(CALL, timeout_s=0.05)
    heal.set()
    assert (answer.status, answer.failure) == ("failed", "timeout")
    assert "no reply within the bound" in answer.error


def test_nobody_at_the_address_is_unreachable() -> None:
    with reserve_ports(1) as ports:
        client = WorkerClient(f"http://127.0.0.1:{ports.numbers[0]}")
        answer = client.generate(CALL)
        assert (answer.status, answer.failure) == ("failed", "unreachable")
        assert not client.healthy()
        client.abort("r1")  # a worker that is gone is found out by its answers
        with pytest.raises(RequestFailed, match=r"GET http://127.*/server_info: unreachable: ConnectError"):
            client.server_info()
        client.close()


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", b"\x00\xff" * 99])
def test_a_connection_that_breaks_is_unreachable(reply: bytes) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with server.accept()[0] as peer:
                peer.recv(65536)
                peer.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        client = WorkerClient(f"http://127.0.0.1:{server.getsockname()[1]}")
        answer = client.generate(CALL)
        thread.join()
        client.close()
    assert (answer.status, answer.failure) == ("failed", "unreachable")


# bursts --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [1, 2, 50])
def test_a_burst_really_overlaps(web: WebServer, client: WorkerClient, size: int) -> None:
    together = threading.Barrier(size)

    def meet(body: bytes) -> tuple[int, dict[str, Any]]:
        together.wait(BOUND_S)  # breaks, and fails the request, unless all are here at once
        return 200, REPLY | {"output_ids": json.loads(body)["input_ids"]}

    web.answers["/generate"] = meet
    answers = client.generate_many([Call(f"r{n}", (n,), 1) for n in range(size)])
    assert [answer.status for answer in answers] == ["ok"] * size
    assert [answer.output_ids for answer in answers] == [(n,) for n in range(size)]
    latest, earliest = max(a.started for a in answers), min(a.ended for a in answers)
    assert latest <= earliest


def aborting_server(web: WebServer) -> Counter[str]:
    """Requests answer when they are aborted, those that start with "quick" at once; counts the aborts."""
    aborted: dict[str, threading.Event] = {}
    counts: Counter[str] = Counter()

    def generate(body: bytes) -> tuple[int, dict[str, Any]]:
        rid = json.loads(body)["rid"]
        if rid.startswith("quick"):
            return 200, REPLY
        return 200, ABORTED if aborted.setdefault(rid, threading.Event()).wait(BOUND_S) else REPLY

    def abort(body: bytes) -> tuple[int, bytes]:
        rid = json.loads(body)["rid"]
        counts[rid] += 1
        aborted.setdefault(rid, threading.Event()).set()
        return 200, b""

    web.answers |= {"/generate": generate, "/abort_request": abort}
    return counts


def test_some_of_a_burst_are_aborted(web: WebServer, client: WorkerClient) -> None:
    counts = aborting_server(web)
    before = SYSTEM_CLOCK.monotonic()
    calls = [
        Call("late", (1,), 1, abort_after_s=0.02),
        Call("quick", (1,), 1),
        Call("now", (1,), 1, abort_after_s=0.0),
    ]
    answers = client.generate_many(calls)
    assert [answer.status for answer in answers] == ["aborted", "ok", "aborted"]
    assert counts == {"late": 1, "now": 1}
    assert list(counts) == ["now", "late"]
    assert answers[0].ended >= before + 0.02


def test_what_has_its_answer_is_not_aborted_nor_waited_for(web: WebServer, client: WorkerClient) -> None:
    counts = aborting_server(web)
    (answer,) = client.generate_many([Call("quick", (1,), 1, abort_after_s=3600.0)])
    assert answer.status == "ok"
    assert counts == {}


def test_a_failure_in_a_burst_is_an_answer_among_others(web: WebServer, client: WorkerClient) -> None:
    web.answers["/generate"] = lambda body: (200, REPLY) if b'"good"' in body else (500, b"broken")
    answers = client.generate_many([Call("good", (1,), 1), Call("bad", (1,), 1)])
    assert [(answer.status, answer.failure) for answer in answers] == [("ok", ""), ("failed", "http")]


# control and looking -------------------------------------------------------------------------------
@pytest.mark.parametrize(("status", "flushed"), [(200, True), (400, False)])
def test_flush(web: WebServer, client: WorkerClient, status: int, flushed: bool) -> None:
    web.always("/flush_cache", status, b"text")
    assert client.flush(2.5) is flushed
    assert web.seen[0].path == "/flush_cache?timeout=2.5"


@pytest.mark.parametrize(
    ("status", "text", "idle"),
    [
        (400, b"Reject attach: scheduler is not idle. #queue-req=0 #running-req=1", False),
        (400, b"Invalid hicache_write_policy: 'tierfuzz-idle-probe'", True),
        (400, b"this endpoint needs --admin-api-key", None),
        (404, b"Not Found", None),
        (200, b"attached", None),
    ],
)
def test_the_idle_probe(
    web: WebServer, client: WorkerClient, status: int, text: bytes, idle: bool | None
) -> None:
    web.always("/hicache/storage-backend", status, text)
    assert client.idle() is idle
    assert web.seen[0].method == "PUT"
    policy = json.loads(web.seen[0].body)["hicache_write_policy"]
    assert policy not in ("write_through", "write_back", "write_through_selective")


def test_control_sends_what_it_is_given(web: WebServer, client: WorkerClient) -> None:
    web.always("/sim/control", 200, {"copies": "hold", "pending": 2})
    assert client.control(copies="hold") == {"copies": "hold", "pending": 2}
    assert json.loads(web.seen[0].body) == {"copies": "hold"}


@pytest.mark.parametrize(("status", "done"), [(200, True), (400, False)])
def test_storage_is_attached_and_detached_or_refused(
    web: WebServer, client: WorkerClient, status: int, done: bool
) -> None:
    web.always("/hicache/storage-backend", status, b"text")
    assert client.attach_storage("write_back", 32) is done
    assert client.detach_storage() is done
    attach, detach = web.seen
    assert (attach.method, detach.method) == ("PUT", "DELETE")
    assert json.loads(attach.body) == {
        "hicache_storage_backend": "file",
        "hicache_storage_backend_extra_config_json": '{"prefetch_threshold":32}',
        "hicache_storage_prefetch_policy": "wait_complete",
        "hicache_write_policy": "write_back",
    }


def test_storage_is_cleared(web: WebServer, client: WorkerClient) -> None:
    web.always("/hicache/storage-backend/clear", 200, b"cleared")
    client.clear_storage()
    assert [seen.method for seen in web.seen] == ["POST"]


def test_health_and_server_info(web: WebServer, client: WorkerClient) -> None:
    web.always("/server_info", 200, {"page_size": 16})
    web.always("/health", 503)
    assert client.server_info() == {"page_size": 16}
    assert not client.healthy()
    web.always("/health", 200)
    assert client.healthy()


def test_metrics_are_read_and_may_be_off(web: WebServer, client: WorkerClient) -> None:
    assert client.metrics() == {}
    web.always("/metrics", 200, b'# TYPE a gauge\na{x="1"} 2\n')
    assert client.metrics() == {"a": 2.0}


def test_an_openai_request(web: WebServer, client: WorkerClient) -> None:
    choice = {"index": 0, "text": "w5", "finish_reason": "length"}
    web.always("/v1/completions", 200, {"object": "text_completion", "choices": [choice]})
    assert client.openai(OpenAiCall((1,), 1)).text == "w5"


ASK: dict[str, Callable[[WorkerClient], object]] = {
    "/flush_cache": lambda client: client.flush(0),
    "/sim/control": lambda client: client.control(copies="hold"),
    "/server_info": lambda client: client.server_info(),
    "/metrics": lambda client: client.metrics(),
    "/v1/completions": lambda client: client.openai(OpenAiCall((1,), 1)),
}
UNEXPECTED = [(path, 503, b"starting") for path in ASK]
UNEXPECTED += [(path, 200, b"<html>") for path in ASK if path != "/flush_cache"]
UNEXPECTED += [(path, 200, b"") for path in ASK if path not in ("/flush_cache", "/metrics")]


@pytest.mark.parametrize(("path", "status", "body"), UNEXPECTED)
def test_other_replies_are_failures_that_name_address_and_reply(
    web: WebServer, client: WorkerClient, path: str, status: int, body: bytes
) -> None:
    web.always(path, status, body)
    with pytest.raises(RequestFailed) as told:
        ASK[path](client)
    assert str(told.value).startswith(web.base_url + path)
    assert str(told.value).endswith(f"{status}: {body.decode() or '(empty)'}")


# in turn -------------------------------------------------------------------------------------------
IN_TURN = [Call(f"r{number}", (number,), 1) for number in range(1, 6)]


def test_requests_in_turn_never_overlap_and_stop_at_a_failure(web: WebServer, client: WorkerClient) -> None:
    web.answers["/generate"] = lambda body: (500, b"broken") if b'"r3"' in body else (200, REPLY)
    answers = list(client.generate_in_turn(IN_TURN))
    assert [answer.status for answer in answers] == ["ok", "ok", "failed"]
    assert all(before.ended <= after.started for before, after in pairwise(answers))
    assert [json.loads(seen.body)["rid"] for seen in web.seen] == ["r1", "r2", "r3"]


def test_the_next_request_is_under_way_while_an_answer_is_used(web: WebServer, client: WorkerClient) -> None:
    second = threading.Event()

    def answer(body: bytes) -> tuple[int, dict[str, Any]]:
        if json.loads(body)["rid"] == "r2":
            second.set()
        return 200, REPLY

    web.answers["/generate"] = answer
    answers = client.generate_in_turn(IN_TURN)
    next(answers)
    assert second.wait(BOUND_S)
    assert len(list(answers)) == len(IN_TURN) - 1


def test_an_iterator_that_is_closed_sends_nothing_more(web: WebServer, client: WorkerClient) -> None:
    go = threading.Event()

    def answer(body: bytes) -> tuple[int, dict[str, Any]]:
        if json.loads(body)["rid"] == "r2":
            go.wait(BOUND_S)
        return 200, REPLY

    web.answers["/generate"] = answer
    answers = client.generate_in_turn(IN_TURN)
    next(answers)
    closing = threading.Thread(target=answers.close)
    closing.start()
    go.set()
    closing.join(BOUND_S)
    assert not closing.is_alive()
    assert len(web.seen) <= 2
    assert client.generate(CALL).status == "ok"

"""Requests that overlap on a live worker, aborts in each phase, clients that hang up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from sim_process import ADMIN, BOUND_S, DEVICE, PAGE, Sim, body, running, tokens, wait_for


@pytest.fixture(scope="module")
def worker() -> Iterator[Sim]:
    """A worker whose steps take a while, so that there is time to meet a request at work."""
    with running("--sim-step-delay-ms=4") as sim:
        yield sim


@pytest.fixture
def sim(worker: Sim) -> Sim:
    """The worker, empty, with copies free."""
    worker.control("release")
    assert worker.flush() == 200
    return worker


class Sent:
    """A request on its way, on a connection of its own."""

    def __init__(self, sim: Sim, ids: list[int], outputs: int, **more: Any) -> None:
        self.reply: dict[str, Any] = {}
        self.thread = threading.Thread(target=self._send, args=(sim, body(ids, outputs, **more)))
        self.thread.start()

    def _send(self, sim: Sim, request: dict[str, Any]) -> None:
        self.reply = httpx.post(f"{sim.http.base_url}/generate", json=request, timeout=BOUND_S).json()

    def meta(self) -> dict[str, Any]:
        """`meta_info`, once it is there."""
        self.thread.join(BOUND_S)
        return dict(self.reply["meta_info"])


def running_count(sim: Sim) -> float:
    """Requests that run now."""
    return sim.metric("num_running_reqs")


def test_requests_overlap(sim: Sim) -> None:
    long = [Sent(sim, tokens(stream, 40), 200) for stream in "ab"]
    assert wait_for("two running requests", lambda: running_count(sim) == 2)
    assert sim.generate(tokens("c", 40), 1)["meta_info"]["completion_tokens"] == 1
    assert all(sent.thread.is_alive() for sent in long)  # the short one overtook them
    assert "scheduler is not idle" in sim.probe()
    assert sim.http.get("/v1/loads").json()["aggregate"]["num_running_reqs"] == 2
    assert [sent.meta()["completion_tokens"] for sent in long] == [200, 200]


def test_an_abort_of_a_running_request_returns_what_there_is_and_keeps_it(sim: Sim) -> None:
    prompt = tokens("a", 4 * PAGE + 1)
    sent = Sent(sim, prompt, 500, rid="running")
    wait_for("a running request", lambda: running_count(sim) == 1)
    assert sim.http.post("/abort_request", json={"rid": "running"}).status_code == 200
    meta = sent.meta()
    assert meta["finish_reason"]["type"] == "abort"
    assert meta["prompt_tokens"] == len(prompt)
    assert 0 < meta["completion_tokens"] < 500
    sim.rest()
    assert sim.cached(prompt)[0] == 4 * PAGE


def test_an_abort_of_a_waiting_request_leaves_nothing(sim: Sim) -> None:
    sim.control("hold")
    sim.generate(tokens("a", DEVICE - 4 * PAGE))
    sent = Sent(sim, tokens("b", 32 * PAGE), 5, rid="waiting")
    wait_for("a waiting request", lambda: sim.metric("num_queue_reqs") == 1)
    assert sim.http.post("/abort_request", json={"rid": "waiting"}).status_code == 200
    meta = sent.meta()
    assert meta.pop("e2e_latency") > 0
    assert meta.pop("finish_reason")["type"] == "abort"
    assert meta == {"id": "waiting", "weight_version": "default", "completion_tokens": 0}
    assert sent.reply["output_ids"] == []
    sim.control("release")
    sim.rest()
    assert sim.cached(tokens("b", 32 * PAGE))[0] == 0


def test_all_requests_can_be_aborted_at_once(sim: Sim) -> None:
    sent = [Sent(sim, tokens(stream, 40), 200) for stream in "abc"]
    wait_for("three running requests", lambda: running_count(sim) == 3)
    assert sim.http.post("/abort_request", json={"abort_all": True}).status_code == 200
    assert [one.meta()["finish_reason"]["type"] for one in sent] == ["abort"] * 3


def test_an_abort_of_an_unknown_request_is_taken(sim: Sim) -> None:
    assert sim.http.post("/abort_request", json={"rid": "nobody"}).status_code == 200


def test_a_name_in_use_is_refused(sim: Sim) -> None:
    sent = Sent(sim, tokens("a", 40), 400, rid="twin")
    wait_for("a running request", lambda: running_count(sim) == 1)
    reply = sim.http.post("/generate", json=body(tokens("b", 40), 1, rid="twin"))
    assert (reply.status_code, "being served" in reply.text) == (400, True)
    sim.http.post("/abort_request", json={"rid": "twin"})
    assert sent.meta()["id"] == "twin"
    assert sim.generate(tokens("b", 40), 1, rid="twin")["meta_info"]["id"] == "twin"


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_hangs_up_aborts_its_request(sim: Sim, stream: bool) -> None:
    request = body(tokens("a", 40), 900, stream=stream)
    client = httpx.Client(base_url=sim.http.base_url, timeout=httpx.Timeout(BOUND_S, read=0.1))
    with client, pytest.raises((httpx.ReadTimeout, StopIteration)):  # noqa: PT012
        if not stream:
            client.post("/generate", json=request)
        with client.stream("POST", "/generate", json=request) as reply:
            next(reply.iter_lines())
            raise StopIteration
    wait_for("the request to be gone", lambda: running_count(sim) == 0)
    sim.rest()
    assert sim.metric("kv_used_tokens") == 0


def test_outputs_appear_one_by_one_while_a_stream_is_open(sim: Sim) -> None:
    with sim.http.stream("POST", "/generate", json=body(tokens("a", 40), 50, stream=True)) as reply:
        lines = reply.iter_lines()
        assert next(lines).startswith("data: ")
        assert httpx.get(f"{sim.http.base_url}/v1/loads").json()["aggregate"]["num_running_reqs"] == 1
        assert list(lines)[-2:] == ["data: [DONE]", ""]


def test_a_flush_waits_for_running_requests(sim: Sim) -> None:
    sent = Sent(sim, tokens("a", 40), 60)
    wait_for("a running request", lambda: running_count(sim) == 1)
    assert sim.http.post("/flush_cache", headers=ADMIN).status_code == 400
    assert sim.flush() == 200
    assert sent.meta()["completion_tokens"] == 60
    assert sim.cached(tokens("a", 40))[0] == 0


def test_a_hang_of_the_engine_leaves_the_server_answering() -> None:
    with running("--sim-plant=stops-after-load-back") as stuck:
        prefix = tokens("a", 4 * PAGE + 1)
        stuck.generate(prefix)
        for stream in "fgh":
            stuck.generate(tokens(stream, DEVICE // 2))
        sent = Sent(stuck, prefix, 0)
        wait_for("the load-back", lambda: stuck.metric("load_back_tokens_total") == 64)
        assert stuck.http.get("/health").status_code == 200
        assert "scheduler is not idle" in stuck.probe()
        stuck.process.terminate()
        assert stuck.process.wait(BOUND_S) == 0
        sent.thread.join(BOUND_S)
        assert "shutting down" in sent.reply["error"]["message"]

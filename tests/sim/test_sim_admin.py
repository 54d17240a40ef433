"""Flush, hold and release, the idle probe and storage at run time, on a live worker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from sim_process import ADMIN, BOUND_S, DEVICE, PAGE, SMALL, Sim, body, running, short, tokens, wait_for


@pytest.fixture(scope="module")
def worker() -> Iterator[Sim]:
    """One worker for the module."""
    with running() as sim:
        yield sim


@pytest.fixture
def sim(worker: Sim) -> Sim:
    """The worker, empty, with copies free."""
    worker.control("release")
    assert worker.flush() == 200
    return worker


class Later:
    """A flush that waits in a thread of its own."""

    def __init__(self, sim: Sim, timeout: float) -> None:
        self.answers: list[int] = []
        url = f"{sim.http.base_url}/flush_cache"

        def flush() -> None:
            reply = httpx.post(url, params={"timeout": timeout}, headers=ADMIN, timeout=BOUND_S)
            self.answers.append(reply.status_code)

        self.thread = threading.Thread(target=flush)
        self.thread.start()

    def answer(self) -> int:
        """The status, once it is there."""
        self.thread.join(BOUND_S)
        return self.answers[0]


def attach(sim: Sim, **keys: Any) -> httpx.Response:
    """PUT /hicache/storage-backend with the admin key."""
    wish = {"hicache_storage_backend": "file", **keys}
    return sim.http.put("/hicache/storage-backend", json=wish, headers=ADMIN)


# flush -------------------------------------------------------------------------------------------------


def test_a_flush_empties_both_tiers_and_says_so_in_one_event(sim: Sim) -> None:
    sim.generate(tokens("a", 4 * PAGE))
    sim.rest()
    assert sim.metric("hicache_host_used_tokens") == 64
    assert sim.flush() == 200
    assert sim.metric("hicache_host_used_tokens") == 0
    assert sim.metric("kv_available_tokens") == DEVICE
    assert sim.cached(tokens("a", 4 * PAGE + 1)) == (0, None)


def test_get_flushes_as_well(sim: Sim) -> None:
    assert sim.http.get("/flush_cache", headers=ADMIN).status_code == 200


def test_a_busy_worker_is_not_flushed_and_keeps_its_cache(sim: Sim) -> None:
    sim.control("hold")
    sim.generate(tokens("a", 4 * PAGE + 1))
    assert sim.flush(timeout=0) == 400
    assert sim.flush(timeout=0.05) == 400  # put off, and the time is up
    assert sim.cached(tokens("a", 4 * PAGE + 1))[0] == 64


def test_of_two_flushes_that_have_to_wait_one_is_put_off_and_one_refused_at_once(sim: Sim) -> None:
    sim.control("hold")
    sim.generate(tokens("a", 4 * PAGE))
    flushes = [Later(sim, 10 * BOUND_S) for _ in range(2)]
    refused = wait_for("one answer", lambda: [flush for flush in flushes if flush.answers])
    assert [flush.answers for flush in refused] == [[400]]  # long before its own deadline
    sim.control("release")
    assert sorted(flush.answer() for flush in flushes) == [200, 400]
    assert short(sim.happened())[-5:] == ["S CPU"] * 4 + ["clear"]


@pytest.mark.parametrize("timeout", ["-1", "soon", "nan", "inf"])
def test_a_timeout_that_is_no_number_of_seconds_is_refused(sim: Sim, timeout: str) -> None:
    reply = sim.http.post("/flush_cache", params={"timeout": timeout}, headers=ADMIN)
    assert reply.status_code == 400
    assert "expected seconds" in reply.text


# hold and release --------------------------------------------------------------------------------------


def test_held_copies_neither_land_nor_let_the_worker_rest(sim: Sim) -> None:
    start = len(sim.happened())
    assert sim.control("hold") == {"copies": "hold", "pending": 0}
    sim.generate(tokens("a", 2 * PAGE))
    assert "scheduler is not idle" in sim.probe()
    assert sim.http.get("/server_info").json()["sim"]["copies"] == "held"
    assert short(sim.happened())[start:] == ["S GPU", "S GPU"]
    assert sim.control("release")["copies"] == "release"
    sim.rest()
    assert short(sim.happened())[start:] == ["S GPU", "S GPU", "S CPU", "S CPU"]


def test_pages_of_a_held_copy_cannot_leave_the_device(sim: Sim) -> None:
    sim.control("hold")
    sim.generate(tokens("a", DEVICE // 2))
    waiting = threading.Thread(target=sim_post, args=(sim, body(tokens("b", DEVICE // 2 + 2 * PAGE))))
    waiting.start()
    wait_for("the request to wait for room", lambda: sim.metric("num_queue_reqs") == 1)
    assert "R GPU" not in short(sim.happened()[-40:])
    sim.control("release")
    waiting.join(BOUND_S)
    assert not waiting.is_alive()
    assert "R GPU" in short(sim.happened()[-120:])


def sim_post(sim: Sim, request: dict[str, Any]) -> None:
    """A request on a connection of its own."""
    httpx.post(f"{sim.http.base_url}/generate", json=request, timeout=BOUND_S)


def test_an_ack_delay_is_waited_for_and_ends() -> None:
    with running("--sim-ack-delay-ms=60", "--sim-seed=5") as delayed:
        delayed.generate(tokens("a", 8 * PAGE), 2)
        delayed.rest()
        assert short(delayed.happened()).count("S CPU") == 8


@pytest.mark.parametrize("wish", [{"copies": "drop"}, {}, {"copies": "hold", "kind": "load"}])
def test_control_takes_two_words_only(sim: Sim, wish: dict[str, str]) -> None:
    reply = sim.http.post("/sim/control", json=wish)
    assert reply.status_code == 400
    assert "bad request body" in reply.text


# the probe and storage ---------------------------------------------------------------------------------


def test_idle_is_checked_before_the_policy(sim: Sim) -> None:
    sim.rest()
    assert "Invalid hicache_write_policy: 'bogus'" in sim.probe()
    sim.control("hold")
    sim.generate(tokens("a", 2 * PAGE))
    assert "scheduler is not idle" in sim.probe()


def test_the_admin_key_guards_what_it_guards_in_the_engine(sim: Sim) -> None:
    assert sim.http.get("/hicache/storage-backend").status_code == 401
    wrong = {"Authorization": "Bearer wrong"}
    assert sim.http.get("/hicache/storage-backend", headers=wrong).status_code == 401
    assert sim.http.post("/flush_cache").status_code == 401
    assert sim.http.get("/hicache/storage-backend", headers=ADMIN).json() == {
        "hicache_storage_backend": None,
        "hicache_storage_backend_extra_config": None,
        "hicache_storage_prefetch_policy": "timeout",
        "hicache_write_policy": "write_through",
    }
    assert sim.generate(tokens("a", PAGE))["meta_info"]["prompt_tokens"] == PAGE


def test_without_an_admin_key_storage_endpoints_are_refused_and_flush_is_free() -> None:
    with running(base=tuple(flag for flag in SMALL if "admin" not in flag)) as sim:
        reply = sim.http.get("/hicache/storage-backend")
        assert reply.status_code == 400
        assert "--admin-api-key" in reply.text
        assert sim.http.post("/flush_cache").status_code == 200


def test_storage_is_attached_served_from_and_detached() -> None:
    with running() as sim:
        wish = {"hicache_storage_backend_extra_config_json": '{"prefetch_threshold":32}'}
        assert attach(sim, **wish).status_code == 200
        prefix = tokens("a", 4 * PAGE + 1)
        assert sim.cached(prefix) == (0, None)
        assert sim.flush() == 200
        backend = {"storage_backend": "HiCacheFile"}
        assert sim.cached(prefix) == (64, {"device": 0, "host": 0, "storage": 64, **backend})
        assert sim.cached(prefix) == (64, {"device": 64, "host": 0, "storage": 0, **backend})
        assert sim.metric("prefetched_tokens_total") == 64
        sim.rest()
        assert sim.http.post("/hicache/storage-backend/clear", headers=ADMIN).status_code == 200
        assert sim.flush() == 200
        assert sim.cached(prefix) == (0, None)
        sim.rest()
        for _ in range(2):  # a second time is fine too
            assert sim.http.delete("/hicache/storage-backend", headers=ADMIN).status_code == 200
        assert sim.cached(prefix) == (64, {"device": 64, "host": 0})


def test_the_write_policy_changes_with_the_backend_and_wrong_wishes_change_nothing() -> None:
    with running("--hicache-storage-backend=file") as sim:
        assert "mooncake" in attach(sim, hicache_storage_backend="mooncake").text
        assert (
            "Invalid hicache_storage_prefetch_policy" in attach(sim, hicache_storage_prefetch_policy="x").text
        )
        assert attach(sim, hicache_storage_backend_extra_config_json="{").status_code == 400
        assert sim.http.get("/server_info").json()["hicache_write_policy"] == "write_through"
        assert attach(sim, hicache_write_policy="write_back").status_code == 200
        assert sim.http.get("/server_info").json()["hicache_write_policy"] == "write_back"
        sim.generate(tokens("a", 2 * PAGE))
        sim.rest()
        assert short(sim.happened()) == ["clear", "S GPU", "S GPU"]


def test_the_newer_engine_does_not_leave_write_back_with_pages_that_have_no_copy() -> None:
    with running("--sim-profile=sglang-0.5.23", "--hicache-write-policy=write_back") as sim:
        assert attach(sim, hicache_write_policy="write_through").status_code == 200
        assert attach(sim, hicache_write_policy="write_back").status_code == 200
        sim.generate(tokens("a", 2 * PAGE))
        sim.rest()
        refused = attach(sim, hicache_write_policy="write_through")
        assert refused.status_code == 400
        assert "lack host copies" in refused.text


def test_clearing_storage_succeeds_even_without_any(sim: Sim) -> None:
    assert sim.http.post("/clear_hicache_storage_backend", headers=ADMIN).status_code == 200

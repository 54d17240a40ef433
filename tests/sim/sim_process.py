"""A simulated worker as a real process, talked to with httpx and pyzmq only: no driver of ours in between."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec
import zmq

from tierfuzz.prompts import Piece, tokens_of

BOUND_S = 20.0
ADMIN_KEY = "secret"
ADMIN = {"Authorization": f"Bearer {ADMIN_KEY}"}
PAGE = 16
DEVICE = 1024
END = b"\xff" * 8
EVENTS = '{"publisher":"zmq","endpoint":"tcp://*:0","replay_endpoint":"tcp://*:0","topic":"kv-events"}'
SMALL = (
    "--port=0",
    "--enable-hierarchical-cache",
    f"--page-size={PAGE}",
    f"--max-total-tokens={DEVICE}",
    f"--admin-api-key={ADMIN_KEY}",
    "--enable-metrics",
    f"--kv-events-config={EVENTS}",
)


def wait_for(what: str, condition: Callable[[], Any]) -> Any:
    """The first true value of `condition`, within the bound."""
    deadline = time.monotonic() + BOUND_S
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.002)
    raise AssertionError(f"not seen within {BOUND_S} s: {what}")


def tokens(stream: str, stop: int, start: int = 0) -> list[int]:
    """Token ids of a stream."""
    return list(tokens_of((Piece(stream, start, stop),)))


@dataclass
class Sim:
    """A running worker."""

    process: subprocess.Popen[str]
    http: httpx.Client
    context: zmq.Context[zmq.Socket[bytes]]
    events: str = ""
    replay: str = ""

    def generate(self, ids: list[int], outputs: int = 0, **more: Any) -> dict[str, Any]:
        """One request; the decoded reply."""
        reply = self.http.post("/generate", json=body(ids, outputs, **more))
        assert reply.status_code == 200, reply.text
        return dict(reply.json())

    def cached(self, ids: list[int], outputs: int = 0, **more: Any) -> tuple[int, dict[str, Any] | None]:
        """cached_tokens and its details."""
        meta = self.generate(ids, outputs, **more)["meta_info"]
        return meta["cached_tokens"], meta["cached_tokens_details"]

    def flush(self, timeout: float = BOUND_S) -> int:
        """Status of a flush."""
        return self.http.post("/flush_cache", params={"timeout": timeout}, headers=ADMIN).status_code

    def control(self, copies: str) -> dict[str, Any]:
        """Hold or release copies."""
        reply = self.http.post("/sim/control", json={"copies": copies})
        assert reply.status_code == 200, reply.text
        return dict(reply.json())

    def probe(self) -> str:
        """Text of the idle probe: a bogus policy, refused for one of two reasons."""
        wish = {"hicache_storage_backend": "file", "hicache_write_policy": "bogus"}
        reply = self.http.put("/hicache/storage-backend", json=wish, headers=ADMIN)
        assert reply.status_code == 400
        return reply.text

    def rest(self) -> None:
        """Wait until the worker says it is idle."""
        wait_for("an idle worker", lambda: "Invalid hicache_write_policy" in self.probe())

    def metric(self, name: str) -> float:
        """Sum over the samples of a metric."""
        lines = self.http.get("/metrics").text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"sglang:{name}{{"))

    def replayed(self, start: int = 0) -> list[list[bytes]]:
        """Frames of every batch from `start` on, as the replay socket gives them, without the end mark."""
        with self.context.socket(zmq.DEALER) as socket:
            socket.setsockopt(zmq.LINGER, 0)
            socket.connect(self.replay)
            socket.send_multipart([b"", start.to_bytes(8, "big")])
            frames: list[list[bytes]] = []
            while True:
                assert socket.poll(int(BOUND_S * 1000)), "no answer from the replay socket"
                frames.append(socket.recv_multipart())
                if frames[-1][-2] == END:
                    return frames[:-1]

    def happened(self, start: int = 0) -> list[list[Any]]:
        """All events of the batches from `start` on, in order, as arrays."""
        return [event for frames in self.replayed(start) for event in msgspec.msgpack.decode(frames[-1])[1]]


def body(ids: list[int], outputs: int = 0, **more: Any) -> dict[str, Any]:
    """The JSON of a request."""
    return {"input_ids": ids, "sampling_params": {"max_new_tokens": outputs, "temperature": 0}, **more}


def short(events: list[list[Any]]) -> list[str]:
    """Events as `S GPU`, `R CPU`, `clear`; one entry an event."""
    names = {"BlockStored": "S", "BlockRemoved": "R"}
    tiers = {"GPU": "GPU", "CPU_PINNED": "CPU"}
    return ["clear" if e[0] == "AllBlocksCleared" else f"{names[e[0]]} {tiers[e[-1]]}" for e in events]


@contextmanager
def running(*flags: str, base: tuple[str, ...] = SMALL) -> Iterator[Sim]:
    """A worker that is ready; ended by SIGTERM, and it must end well, unless the test ended it."""
    with started(*flags, base=base) as (process, log):
        line = wait_for("the readiness line", lambda: _ready(process, log))
        words = line.split()
        with httpx.Client(base_url=words[3], timeout=BOUND_S) as client, zmq.Context() as context:
            sim = Sim(process, client, context)
            if "events" in words:
                sim.events = words[words.index("events") + 1]
            if "replay" in words:
                sim.replay = words[words.index("replay") + 1]
            yield sim
        if process.poll() is None:
            process.terminate()
            assert process.wait(BOUND_S) == 0, log.read_text()


@contextmanager
def started(*flags: str, base: tuple[str, ...] = SMALL) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A worker process and its log (both streams); killed if it is still there in the end."""
    with tempfile.NamedTemporaryFile(mode="w", prefix="tierfuzz-sim-", suffix=".log") as log:
        command = [sys.executable, "-m", "tierfuzz.sim", *base, *flags]
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, text=True)
        try:
            yield process, Path(log.name)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(BOUND_S)


def _ready(process: subprocess.Popen[str], log: Path) -> str:
    text = log.read_text()
    assert process.poll() is None, f"ended with {process.returncode}: {text}"
    return next(
        (x for x in text.splitlines(keepends=True) if "tierfuzz sim ready" in x and x.endswith("\n")), ""
    )


def events_config(**keys: Any) -> str:
    """The flag with an event configuration."""
    return f"--kv-events-config={json.dumps(keys)}"

"""Requests a second of a simulated worker, as ratios to a no-op endpoint of the same server in the same run.

    python benchmarks/bench_sim.py [REQUESTS]

Every row sends the same number of requests one after another over one kept connection.
"""

from __future__ import annotations

import http.client
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import httpx
import msgspec

from tierfuzz.prompts import stream_tokens

PAGE = 16
DEVICE = 8192
EVENTS = '{"publisher":"zmq","endpoint":"tcp://*:0","replay_endpoint":"tcp://*:0"}'
FLAGS = (
    "--port=0",
    "--enable-hierarchical-cache",
    f"--page-size={PAGE}",
    f"--max-total-tokens={DEVICE}",
    f"--kv-events-config={EVENTS}",
)


def request(stream: str, length: int, outputs: int) -> bytes:
    """The body of one request."""
    ids = stream_tokens(stream, 0, length).tolist()
    return msgspec.json.encode({"input_ids": ids, "sampling_params": {"max_new_tokens": outputs}})


def workloads(count: int) -> dict[str, list[bytes]]:
    """Bodies by name; `count` of each."""
    return {
        "device hit, 129 tokens, 0 outputs": [request("warm", 129, 0)] * count,
        "device hit, 129 tokens, 8 outputs": [request("warm", 129, 8)] * count,
        "fresh, 129 tokens, 0 outputs": [request(f"a{i}", 129, 0) for i in range(count)],
        "fresh, 1025 tokens, 0 outputs": [request(f"b{i}", 1025, 0) for i in range(count)],
        "host hits, 1025 tokens, 0 outputs": [request(f"c{i % 12}", 1025, 0) for i in range(count)],
    }


def rate(send: Callable[[bytes], int], bodies: Sequence[bytes]) -> float:
    """Requests a second."""
    start = time.perf_counter()
    for body in bodies:
        assert send(body) == 200
    return len(bodies) / (time.perf_counter() - start)


def with_httpx(url: str, path: str) -> Callable[[bytes], int]:
    """One request over httpx, as the tester's own driver sends it."""
    client = httpx.Client(base_url=url, timeout=30)
    if path == "/health":
        return lambda _: client.get(path).status_code
    return lambda body: client.post(path, content=body).status_code


def with_stdlib(url: str, path: str) -> Callable[[bytes], int]:
    """One request over http.client, whose own cost is small."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)

    def send(body: bytes) -> int:
        if path == "/health":
            connection.request("GET", path)
        else:
            connection.request("POST", path, body)
        reply = connection.getresponse()
        reply.read()
        return reply.status

    return send


def main() -> None:
    """Run and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    command = [sys.executable, "-m", "tierfuzz.sim", *FLAGS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        start = time.perf_counter()
        url = process.stdout.readline().split()[3]
        print(f"ready after {time.perf_counter() - start:.2f} s")
        try:
            report(url, count)
        finally:
            process.terminate()


def report(url: str, count: int) -> None:
    """Print one row a workload: rates over both clients, and their ratio to the no-op endpoint."""
    clients = {"httpx": with_httpx, "http.client": with_stdlib}
    noop = {name: rate(make(url, "/health"), [b""] * count) for name, make in clients.items()}
    print(f"{'workload':36}" + "".join(f"{name:>14}{'ratio':>8}" for name in clients))
    print(f"{'no-op (/health)':36}" + "".join(f"{noop[name]:>12.0f}/s{1.0:>8.2f}" for name in clients))
    for workload, bodies in workloads(count).items():
        row = f"{workload:36}"
        for name, make in clients.items():
            found = rate(make(url, "/generate"), bodies)
            row += f"{found:>12.0f}/s{found / noop[name]:>8.2f}"
            httpx.post(f"{url}/flush_cache", params={"timeout": 10}, timeout=30)
        print(row)


if __name__ == "__main__":
    main()

"""The machine against a bare httpx loop on the same worker, and the model's time as its history grows."""

from __future__ import annotations

import tempfile
from pathlib import Path

import httpx
import msgspec

from tierfuzz.campaign import CampaignConfig, run_campaign
from tierfuzz.clock import SYSTEM_CLOCK
from tierfuzz.fleet import Fleet
from tierfuzz.observation import Observation
from tierfuzz.oracles.judge import Judge
from tierfuzz.program import FleetConfig, Generate, Restart
from tierfuzz.prompts import Piece, tokens_of
from tierfuzz.runevents import CaseEnded, CaseStarted, OperationDone, OperationStarted, RunEvent

FLEET = FleetConfig(host_ratio=3.0)


class Sent:
    """Collects every request that the machine sends, in order, and the time spent in cases.

    Starting and restarting processes does not count: the bare loop has nothing to compare with it.
    """

    def __init__(self) -> None:
        self.requests: list[Observation] = []
        self.seconds = 0.0
        self._since = self._operation_since = 0.0

    def on_event(self, event: RunEvent) -> None:
        """Keep the observations of each operation; add up the time of cases, less restarts."""
        now = SYSTEM_CLOCK.monotonic()
        if isinstance(event, CaseStarted):
            self._since = now
        elif isinstance(event, CaseEnded):
            self.seconds += now - self._since
        elif isinstance(event, OperationStarted):
            self._operation_since = now
        elif isinstance(event, OperationDone):
            self.requests += event.observations
            if isinstance(event.operation, Restart):
                self.seconds -= now - self._operation_since


def machine_against_loop() -> None:
    """Requests a second of both ways, over the same requests."""
    sent = Sent()
    with tempfile.TemporaryDirectory() as logs:
        config = CampaignConfig(FLEET, ("write_through",), 20, 30, log_dir=Path(logs))
        (result,) = run_campaign(config, [sent]).policies
        loop_s = bare_loop(sent.requests, Path(logs))
    machine, loop = len(sent.requests) / sent.seconds, len(sent.requests) / loop_s
    print(f"machine: {machine:.0f} requests/s, {result.operations / sent.seconds:.0f} operations/s")
    print(f"bare httpx loop, same requests: {loop:.0f} requests/s")
    print(f"ratio machine / loop: {machine / loop:.2f} (goal 0.85)")


def bare_loop(requests: list[Observation], logs: Path) -> float:
    """Seconds for the same requests, one after another, on fresh workers."""
    with Fleet(FLEET, logs) as fleet:
        clients = [httpx.Client(base_url=worker.launch.base_url) for worker in fleet.workers]
        bodies = [(seen.worker, body_of(seen)) for seen in requests]
        started = SYSTEM_CLOCK.monotonic()
        for worker, body in bodies:
            clients[worker].post("/generate", content=body).raise_for_status()
        seconds = SYSTEM_CLOCK.monotonic() - started
        for client in clients:
            client.close()
    return seconds


def body_of(seen: Observation) -> bytes:
    """The JSON of a request."""
    body = {
        "input_ids": seen.prompt,
        "sampling_params": {"max_new_tokens": seen.requested_outputs, "temperature": 0, "ignore_eos": True},
    }
    return msgspec.json.encode(body | ({"extra_key": seen.namespace} if seen.namespace else {}))


def model_growth() -> None:
    """Microseconds an operation of the judge, at different lengths of history without a flush."""
    judge = Judge(FLEET, 0)
    steps = {1_000: 0.0, 10_000: 0.0, 100_000: 0.0}
    number, last = 0, SYSTEM_CLOCK.monotonic()
    for most in steps:
        before = number
        while number < most:
            one_operation(judge, number)
            number += 1
        now = SYSTEM_CLOCK.monotonic()
        steps[most] = (now - last) / (number - before) * 1e6
        last = now
    for most, microseconds in steps.items():
        print(f"model, up to {most} operations: {microseconds:.0f} us an operation")
    print(f"ratio 100,000 / 1,000: {steps[100_000] / steps[1_000]:.2f} (flat is 1)")


def one_operation(judge: Judge, number: int) -> None:
    """One request of eight pages, half of them fresh streams."""
    name = f"s{number % 50}" if number % 2 else f"n{number}"
    pieces = (Piece(name, 0, 130),)
    tokens = tokens_of(pieces)
    generate = Generate(f"op{number}", 0, pieces, 1)
    judge.expect(generate, tokens, at_rest=False)
    judge.replied(
        generate, Observation(generate.id, 0, None, tokens, 1, "ok", 0.0, 0.0, (1,), len(tokens), 0, None)
    )
    if number % 8 == 0:
        judge.rested()
    judge.take_verdicts()


if __name__ == "__main__":
    machine_against_loop()
    model_growth()

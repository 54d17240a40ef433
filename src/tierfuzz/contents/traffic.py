"""Prefilled prefixes asked for beside steady decodes: whether what is loaded back stays what it was."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random

from tierfuzz.contents.asking import Asker, Tokens, compared, served_of
from tierfuzz.oracles.contents import Comparison
from tierfuzz.worker.http import Answer

PREFIXES = 10
PREFIX = 64  # tokens
FRESH = 8  # one probe in so many is computed, in a namespace of its own


@dataclass(frozen=True)
class Load:
    """Decoders with up to `outputs` outputs, probers that pause up to `pause_s`, for `seconds`."""

    decoders: int = 5
    probers: int = 3
    outputs: int = 12
    pause_s: float = 0.004
    seconds: float = 60.0

    def described(self) -> str:
        """For people."""
        return (
            f"{self.decoders} decoders of 2 to {self.outputs} outputs, {self.probers} probers, "
            f"pauses up to {self.pause_s * 1000:g} ms, {self.seconds:g} s"
        )


def probe_under(asker: Asker, load: Load) -> list[Comparison]:
    """Cold answers first, then prefixes again and again beside the load."""
    prompts = [asker.fresh(PREFIX + 1) for _ in range(PREFIXES)]
    cold = []
    for prompt in prompts:
        asker.flush()
        cold.append(asker.ask(prompt))
    asker.flush()
    for prompt in prompts:
        asker.ask(prompt[:PREFIX], 0)
    return _Traffic(asker, load, prompts, cold).run()


class _Traffic:
    """The threads of one load; each has a random source of its own."""

    def __init__(self, asker: Asker, load: Load, prompts: list[Tokens], cold: list[Answer]) -> None:
        self._asker = asker
        self._load = load
        self._pairs = list(zip(prompts, cold, strict=True))
        self._kind = "traffic" if load.decoders else "quiet"
        self._seen: list[Comparison] = []
        self._stop = threading.Event()
        self._end = asker.fleet.clock.monotonic() + load.seconds

    def run(self) -> list[Comparison]:
        """Until the time is over, or one of them fails."""
        roles = [self._decode] * self._load.decoders + [self._probe] * self._load.probers
        roles += [] if self._load.decoders else [self._fill]
        randoms = [Random(self._asker.random.getrandbits(32)) for _ in roles]
        try:
            with ThreadPoolExecutor(len(roles), thread_name_prefix="tierfuzz-content") as pool:
                futures = [
                    pool.submit(self._repeat, role, own) for role, own in zip(roles, randoms, strict=True)
                ]
                for future in futures:
                    future.result()
        finally:
            self._stop.set()
        return self._seen

    def _repeat(self, role: Callable[[Random], None], own: Random) -> None:
        try:
            while not self._stop.is_set() and self._asker.fleet.clock.monotonic() < self._end:
                role(own)
        except BaseException:
            self._stop.set()
            raise

    def _decode(self, own: Random) -> None:
        length = self._pages(own)
        self._asker.ask(self._asker.fresh(length), own.randint(2, self._load.outputs))

    def _fill(self, own: Random) -> None:
        self._asker.ask(self._asker.fresh(self._pages(own)), 0)

    def _pages(self, own: Random) -> int:
        return own.randint(16, 64) if self._asker.page == 1 else self._asker.page * own.randint(1, 4)

    def _probe(self, own: Random) -> None:
        prompt, cold = own.choice(self._pairs)
        space = f"fresh-{own.getrandbits(60):x}" if own.randrange(FRESH) == 0 else None
        answer = self._asker.ask(prompt, 1, space)
        served = served_of(answer, PREFIX)
        if served is not None:
            self._seen.append(compared(self._kind, served, answer, cold, PREFIX, 0))
        self._asker.fleet.clock.sleep(own.uniform(0, self._load.pause_s))

"""Short histories of one worker, told to a judge: requests, bursts, flushes, and their events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from recorded import violations

from tierfuzz.events import AllBlocksCleared, Batch, BlockRemoved, BlockStored, EventFault, KvEvent
from tierfuzz.hashing import page_hashes
from tierfuzz.observation import Observation, TierSplit
from tierfuzz.oracles.judge import Judge
from tierfuzz.program import FleetConfig, Generate, WritePolicy
from tierfuzz.prompts import Piece, tokens_of
from tierfuzz.traits import Traits

PAGE = 16
TAIL = 4  # tokens after the last whole page of a prompt
DEVICE_PAGES = 64
GPU, CPU, DISK = "GPU", "CPU_PINNED", "DISK"
Events = Sequence[KvEvent]


def pieces_of(stream: str, pages: int) -> tuple[Piece, ...]:
    """A prompt of so many whole pages and a tail."""
    return (Piece(stream, 0, pages * PAGE + TAIL),)


def hashes_of(stream: str, pages: int) -> tuple[int, ...]:
    """Block hashes of that prompt."""
    return page_hashes(tokens_of(pieces_of(stream, pages)), PAGE)


def store(stream: str, pages: int, medium: str = GPU, first: int = 0) -> BlockStored:
    """Pages first..pages-1 of a stream became resident."""
    hashes = hashes_of(stream, pages)
    tokens = tokens_of(pieces_of(stream, pages))[first * PAGE : pages * PAGE]
    return BlockStored(hashes[first:], hashes[first - 1] if first else None, tokens, PAGE, medium)


def remove(stream: str, pages: int, medium: str = GPU) -> BlockRemoved:
    """Pages of a stream left a tier."""
    return BlockRemoved(hashes_of(stream, pages), medium)


def fresh(stream: str, pages: int) -> list[KvEvent]:
    """A prompt was computed and backed up (write_through)."""
    return [store(stream, pages), store(stream, pages, CPU)]


class Story:
    """One worker of 64 device pages, told to a judge."""

    def __init__(
        self,
        host_ratio: float = 2.0,
        storage_threshold: int = 0,
        policy: WritePolicy = "write_through",
        advertised: int | None = None,
    ) -> None:
        self.fleet = FleetConfig(
            policy=policy,
            workers=1,
            page_size=PAGE,
            device_tokens=DEVICE_PAGES * PAGE,
            host_ratio=host_ratio,
            storage_threshold=storage_threshold,
        )
        self.judge = Judge(self.fleet, 0, Traits(advertised=advertised))
        self.told = 0

    def violations(self) -> Counter[str]:
        """How often each oracle was violated so far."""
        return violations(self.judge)

    def say(self, events: Events, *faults: EventFault) -> None:
        """One batch of events."""
        self.told += 1
        self.judge.batch(Batch(self.told, 0.0, 0, tuple(events), faults))

    def generate(self, stream: str, pages: int, namespace: str | None = None) -> Generate:
        """A request that asks for one output."""
        self.told += 1
        return Generate(f"r{self.told}", 0, pieces_of(stream, pages), 1, "repeat", namespace)

    def reply(self, asked: Generate, split: TierSplit | None, cached: int | None, output: int) -> None:
        """Its answer; `cached` is the sum of the split unless it is given."""
        total = split.total if split is not None else 0
        seen = Observation(
            operation=asked.id,
            worker=0,
            namespace=asked.namespace,
            prompt=tokens_of(asked.prompt),
            requested_outputs=asked.outputs,
            status="ok",
            started=0.0,
            ended=0.0,
            output_ids=(output,),
            prompt_tokens=len(tokens_of(asked.prompt)),
            cached_tokens=total if cached is None else cached,
            split=split,
        )
        self.judge.replied(asked, seen)

    def ask(
        self,
        stream: str,
        pages: int,
        events: Events = (),
        split: TierSplit | None = None,
        *,
        cached: int | None = None,
        namespace: str | None = None,
        output: int = 7,
    ) -> None:
        """One request from rest to rest."""
        asked = self.generate(stream, pages, namespace)
        self.judge.expect(asked, tokens_of(asked.prompt), at_rest=True)
        self.say(events)
        self.reply(asked, split, cached, output)
        self.judge.rested()

    def burst(self, requests: Sequence[tuple[str, int, TierSplit | None]], events: Events) -> None:
        """Requests together (stream, pages, split of the reply), from rest to rest."""
        asked = [self.generate(stream, pages) for stream, pages, _ in requests]
        self.judge.expect_together([(one, tokens_of(one.prompt)) for one in asked], at_rest=True)
        self.say(events)
        for one, (_, _, split) in zip(asked, requests, strict=True):
            self.reply(one, split, None, 7)
        self.judge.rested()

    def prime(self, stream: str, pages: int = 4) -> None:
        """A prompt that is new: computed, stored and backed up."""
        self.ask(stream, pages, fresh(stream, pages))

    def turn_over(self, stream: str, pages: int = 4) -> None:
        """Fillers of 64 pages push these pages off the device; they stay on host."""
        self.ask("filler0", 8, [remove(stream, pages), *fresh("filler0", 8)])
        for number in range(1, 8):
            self.prime(f"filler{number}", 8)

    def flush(self, *, announced: bool = True) -> None:
        """The worker was emptied."""
        self.judge.flushed("flush")
        self.say([AllBlocksCleared()] if announced else [])
        self.judge.rested()

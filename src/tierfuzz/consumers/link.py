"""The way from workers to a consumer: every message once, replays on demand, and what they say in truth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from tierfuzz.consumers.base import Consumer, Source
from tierfuzz.consumers.registry import make_consumer
from tierfuzz.events import Batch
from tierfuzz.faults.registry import make_fault
from tierfuzz.ledger import Ledger
from tierfuzz.model.faults import Fault, wrap
from tierfuzz.program import FleetConfig

RANK = 0  # the only one that a worker has here
MOST_ROUNDS = 4  # of replays that a consumer may ask for after one message

MakeConsumer = Callable[[str, Sequence[Fault]], Consumer]


class Link:
    """Delivers to one consumer and books the same messages in ledgers: what it can know, and no more.

    `partial`: workers of which messages are missing and in no replay, so that who claims less may be right.
    `unheard`: workers that started again and have not said anything since.
    `deregistered`: sources that the consumer was told are gone.
    """

    def __init__(
        self, consumer: Consumer, page_size: int, workers: int, faults: Sequence[Fault] = ()
    ) -> None:
        self.consumer = consumer
        self.ledgers = [Ledger() for _ in range(workers)]
        self.partial: set[int] = set()
        self.unheard: set[int] = set()
        self.deregistered: set[Source] = set()
        self._page_size = page_size
        self._logs: defaultdict[int, list[tuple[int, bytes]]] = defaultdict(list)
        for fault in faults:
            wrap("link", self, self, fault)
        self._register()

    @staticmethod
    def of(fleet: FleetConfig, make: MakeConsumer = make_consumer) -> Link:
        """To a fresh consumer of the configuration, with the planted faults that have seams here or there.

        `make` may know consumers that need sockets, as tierfuzz.routers.registry does.
        """
        faults = [make_fault(name) for name in fleet.plants]
        return Link(make(fleet.consumer, faults), fleet.page_size, fleet.places, faults)

    def _register(self) -> None:
        self.deregistered.clear()
        for worker in range(len(self.ledgers)):
            self.consumer.register(worker, self._page_size)
        self._answer()

    # messages --------------------------------------------------------------------------------------
    def heard(self, worker: int, batch: Batch, payload: bytes) -> None:
        """A worker has published a message; they come in order, each once."""
        log = self._logs[worker]
        if log and batch.seq <= log[-1][0]:
            self.restarted(worker)
        elif log and batch.seq > log[-1][0] + 1:
            self.partial.add(worker)
        self.unheard.discard(worker)
        log.append((batch.seq, payload))
        self.ledgers[worker].apply(batch)
        if (worker, RANK) not in self.deregistered:
            self.relay(worker, batch.seq, payload)
            self._answer()

    def relay(self, worker: int, seq: int, payload: bytes) -> None:
        """A live message goes to the consumer: the seam for losses on the way."""
        self.consumer.deliver(worker, RANK, seq, payload)

    def _answer(self) -> None:
        for _ in range(MOST_ROUNDS):
            if not (wishes := self.consumer.wanted()):
                return
            for worker, rank, first in wishes:
                for seq, payload in self._logs[worker]:
                    if seq >= first and rank == RANK:
                        self.consumer.deliver(worker, rank, seq, payload)

    def restarted(self, worker: int) -> None:
        """The worker's process is another one: nothing of the old one can be replayed, or is true."""
        self._logs[worker].clear()
        self.ledgers[worker].clear()
        self.partial.discard(worker)
        self.unheard.add(worker)

    # the consumer's life ---------------------------------------------------------------------------
    def restart_consumer(self, replay: bool) -> None:
        """It starts over; without `replay` what was published so far is out of reach."""
        if not replay:
            self._logs.clear()
            for ledger in self.ledgers:
                ledger.clear()
        self.consumer.reset()
        self._register()

    def deregister(self, worker: int, rank: int) -> None:
        """Tell it that a rank is gone."""
        self.deregistered.add((worker, rank))
        self.consumer.deregister(worker, rank)

"""One simulated worker put together: its ranks, and what they have in common."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

from tierfuzz.clock import SYSTEM_CLOCK, Clock
from tierfuzz.model.config import StorageConfig
from tierfuzz.model.engine import Engine
from tierfuzz.program import WritePolicy
from tierfuzz.sim.config import PrefetchPolicy, SimOptions
from tierfuzz.sim.loop import Scheduler
from tierfuzz.sim.publisher import Publisher
from tierfuzz.sim.rank import Rank

STORAGE_CLASS = "HiCacheFile"


class SimWorker:
    """What the HTTP handlers serve. Opens the event sockets; close() gives them back.

    `engine`, `scheduler` and `publisher` are those of rank 0, the only one unless more are asked for.
    """

    def __init__(self, options: SimOptions, clock: Clock = SYSTEM_CLOCK) -> None:
        self.options = options
        self.clock = clock
        self.started = clock.wall()
        self.port = options.port  # the real one, once the server listens
        self.ranks: list[Rank] = []
        with ExitStack() as undo:
            undo.callback(self.close)
            for number in range(options.ranks):
                self.ranks.append(Rank(options, number, clock))
            undo.pop_all()
        self.storage_backend = options.storage_backend
        self.storage_policy: PrefetchPolicy = options.storage_policy
        self.storage_extra = options.storage_extra

    @property
    def engine(self) -> Engine:
        """The engine of rank 0; all have the same configuration."""
        return self.ranks[0].engine

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler of rank 0."""
        return self.ranks[0].scheduler

    @property
    def publisher(self) -> Publisher | None:
        """The publisher of rank 0."""
        return self.ranks[0].publisher

    @property
    def idle(self) -> bool:
        """Every rank is."""
        return all(rank.scheduler.idle for rank in self.ranks)

    @property
    def counters(self) -> Counter[str]:
        """Totals of all ranks since the process started."""
        return sum((rank.engine.counters for rank in self.ranks), Counter())

    @property
    def policy(self) -> WritePolicy:
        """The write policy in force."""
        return self.engine.config.policy

    def attach(
        self,
        policy: WritePolicy,
        backend: str | None,
        prefetch: PrefetchPolicy,
        extra: str | None,
        threshold: int,
    ) -> None:
        """Change write policy and storage of an idle worker; `threshold` in tokens."""
        for rank in self.ranks:
            rank.engine.reconfigure(policy, StorageConfig(threshold) if backend else None)
        self.storage_backend, self.storage_policy, self.storage_extra = backend, prefetch, extra

    def close(self) -> None:
        """Fail what is open and close the event sockets."""
        for rank in self.ranks:
            rank.close()

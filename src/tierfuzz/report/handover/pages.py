"""Pages by name and by tier, as events claim them while a run is retold."""

from __future__ import annotations

from collections.abc import Iterable

from tierfuzz.engines.registry import driver_for
from tierfuzz.events import AllBlocksCleared, Batch, BlockStored, KvEvent, Tier
from tierfuzz.hashing import page_hashes
from tierfuzz.ledger import Ledger
from tierfuzz.program import FleetConfig, Generate

MOST_RUNS = 8
LEGEND = "D device, H host, B both, . in no tier"
_LETTERS = {(False, False): ".", (True, False): "D", (False, True): "H", (True, True): "B"}


class Pages:
    """Every page of a run: op0#3 is page 3 of the prompt and answer of op0."""

    def __init__(self, fleet: FleetConfig) -> None:
        self._fleet = fleet
        self._traits = driver_for(fleet.engine).traits(fleet)
        self._names: dict[int, tuple[str, int]] = {}
        self._ledgers = {worker: Ledger() for worker in range(fleet.places)}

    def hashes(self, request: Generate, tokens: tuple[int, ...]) -> tuple[int, ...]:
        """Blocks of the whole pages of a sequence, in the namespace of a request."""
        return page_hashes(tokens, self._fleet.page_size, self._traits.seed(request.namespace or ""))

    def name(self, request: str, hashes: Iterable[int]) -> None:
        """These are pages of a request; who came first keeps the name."""
        for index, block in enumerate(hashes):
            self._names.setdefault(block, (request, index))

    def apply(self, worker: int, batch: Batch) -> None:
        """Book a batch."""
        self._ledgers[worker].apply(batch)

    def clear(self, worker: int) -> None:
        """The worker was started again."""
        self._ledgers[worker].clear()

    def state(self, worker: int, hashes: Iterable[int]) -> str:
        """One letter a page: LEGEND."""
        ledger = self._ledgers[worker]
        return "".join(
            _LETTERS[ledger.resident(0, Tier.DEVICE, block), ledger.resident(0, Tier.HOST, block)]
            for block in hashes
        )

    def totals(self, worker: int) -> str:
        """Blocks that events claim for each tier."""
        ledger = self._ledgers[worker]
        pools = {Tier.DEVICE: self._fleet.device_tokens, Tier.HOST: self._fleet.host_tokens}
        return ", ".join(
            f"{tier} {ledger.tier_blocks(tier, 0)} of {tokens // self._fleet.page_size}"
            for tier, tokens in pools.items()
        )

    # words -----------------------------------------------------------------------------------------
    def event_texts(self, batch: Batch) -> list[str]:
        """The events of a batch in words, neighbours of one kind joined."""
        joined: list[tuple[str, list[int]]] = []
        for event in batch.events:
            kind, blocks = _kind(event), [] if isinstance(event, AllBlocksCleared) else list(event.hashes)
            if joined and joined[-1][0] == kind:
                joined[-1][1].extend(blocks)
            else:
                joined.append((kind, blocks))
        return [f"{kind} {self.text(blocks)}".rstrip() for kind, blocks in joined]

    def text(self, blocks: list[int]) -> str:
        """Blocks by name, runs joined: op0#0..9; a block that nobody knows by its hash."""
        runs: list[tuple[str, int, int]] = []
        for block in blocks:
            request, index = self._names.get(block, (str(block), -1))
            if runs and index >= 0 and runs[-1][0] == request and runs[-1][2] == index - 1:
                runs[-1] = (request, runs[-1][1], index)
            else:
                runs.append((request, index, index))
        shown = [_run_text(*run) for run in runs[:MOST_RUNS]]
        return " ".join(shown) + (f" and {len(runs) - MOST_RUNS} more" if len(runs) > MOST_RUNS else "")


def _kind(event: KvEvent) -> str:
    if isinstance(event, AllBlocksCleared):
        return "cleared everything"
    return f"{'stored' if isinstance(event, BlockStored) else 'removed'} {event.tier}"


def _run_text(request: str, first: int, last: int) -> str:
    if first < 0:
        return request
    return f"{request}#{first}..{last}" if last > first else f"{request}#{first}"

"""A worker's past in short: whole prompts, each told from its sending to rest."""

from __future__ import annotations

from tierfuzz.forecast.contract import Contract, Forecast
from tierfuzz.forecast.history import History
from tierfuzz.program import FleetConfig

PAGE = 16
FLEET = FleetConfig(page_size=PAGE, device_tokens=64 * PAGE, host_ratio=2.0)  # 64 and 129 pages


def pages_of(branch: int, pages: int, fork: int | None = None, other: int = 0) -> tuple[int, ...]:
    """Block hashes of a prompt; from page `fork` on it goes its `other` way."""
    return tuple(
        1000 * branch + index if fork is None or index < fork else 1000 * branch + 100 * other + index
        for index in range(pages)
    )


class Past:
    """History and contract of one worker, fed with whole requests."""

    def __init__(self, fleet: FleetConfig = FLEET) -> None:
        self.fleet = fleet
        self.history = History()
        self.contract = Contract(fleet, self.history)
        self.told = 0

    def ask(
        self, hashes: tuple[int, ...], *, namespace: str = "", done: bool = True, rest: bool = True
    ) -> str:
        """One request; returns its name. `done`: it ended by length; `rest`: rest was proved after it."""
        self.told += 1
        name = f"r{self.told}"
        began = self.history.begin(namespace, hashes, name)
        self.history.end(namespace, hashes, name)
        if done:
            self.history.complete(namespace, hashes, name, began)
        if rest:
            self.history.rest()
        return name

    def fill(self, prompts: int, pages: int = 8, first: int = 100) -> None:
        """Fillers, each a branch of its own."""
        for number in range(prompts):
            self.ask(pages_of(first + number, pages))

    def forecast(
        self,
        hashes: tuple[int, ...],
        *,
        namespace: str = "",
        logprob_start: int | None = None,
        quiet: bool = True,
        announced: int = 0,
    ) -> Forecast:
        """For a prompt that ends four tokens after its last whole page."""
        tokens = len(hashes) * self.fleet.page_size + 4
        return self.contract.forecast(namespace, hashes, tokens, logprob_start, quiet, announced)

"""Prompts that were completed lately, and which of them must be served from host now."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tierfuzz.eventview import EventView
from tierfuzz.forecast.contract import Contract
from tierfuzz.program import Generate

MOST_KNOWN = 64


@dataclass(frozen=True)
class KnownPrefix:
    """A prompt that was completed, and how many of its leading pages are host-only by the forecast."""

    generate: Generate
    tokens: tuple[int, ...]
    pages: int


class KnownPrompts:
    """The last completed prompts of one worker, fillers left out."""

    def __init__(self) -> None:
        self._prompts: deque[tuple[Generate, tuple[int, ...], tuple[int, ...]]] = deque(maxlen=MOST_KNOWN)

    def add(self, generate: Generate, tokens: tuple[int, ...], hashes: tuple[int, ...]) -> None:
        """A prompt was completed."""
        if generate.role != "filler" and hashes:
            self._prompts.append((generate, tokens, hashes))

    def clear(self) -> None:
        """Device and host are empty."""
        self._prompts.clear()

    def host_only(self, contract: Contract, view: EventView) -> list[KnownPrefix]:
        """Those that must be served from host by a worker at rest."""
        found = []
        for generate, tokens, hashes in self._prompts:
            namespace = generate.namespace or ""
            announced = view.leading_on_host(namespace, hashes)
            forecast = contract.forecast(namespace, hashes, len(tokens), None, True, announced)
            if forecast.host_only:
                found.append(KnownPrefix(generate, tokens, forecast.host_only))
        return found

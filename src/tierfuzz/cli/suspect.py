"""The consumer that a command names, made anew for every stream."""

from __future__ import annotations

from dataclasses import dataclass

from tierfuzz.consumers.base import Consumer
from tierfuzz.consumers.registry import make_consumer
from tierfuzz.faults.registry import make_fault


@dataclass(frozen=True)
class Suspect:
    """A consumer by name, the faults planted in it, and what is right where a block is stored twice."""

    name: str
    plants: tuple[str, ...] = ()
    reading: str = "either"

    def __call__(self) -> Consumer:
        """A fresh one, with fresh faults; UsageError for names that nobody knows."""
        return make_consumer(self.name, [make_fault(plant) for plant in self.plants])

    @property
    def title(self) -> str:
        """Its name, and what is planted."""
        return "+".join((self.name, *self.plants))

    @property
    def options(self) -> str:
        """How a command names it."""
        plants = "".join(f" --plant {plant}" for plant in self.plants)
        reading = "" if self.reading == "either" else f" --reading {self.reading}"
        return f"--consumer {self.name}{plants}{reading}"

"""The consumer that a command names, made anew for every stream."""

from __future__ import annotations

from dataclasses import dataclass

from tierfuzz.consumers.base import Consumer
from tierfuzz.errors import UsageError
from tierfuzz.faults.registry import make_fault
from tierfuzz.model.faults import SEAMS
from tierfuzz.routers.registry import make_consumer


@dataclass(frozen=True)
class Suspect:
    """A consumer by name, the faults planted in it, and what is right where a block is stored twice."""

    name: str
    plants: tuple[str, ...] = ()
    reading: str = "either"

    def __call__(self) -> Consumer:
        """A fresh one, with fresh faults; UsageError for names that nobody knows."""
        faults = [make_fault(plant) for plant in self.plants]
        for plant, fault in zip(self.plants, faults, strict=True):
            if not any(owner == "consumer" and hasattr(fault, seam) for seam, owner in SEAMS.items()):
                raise UsageError(f"--plant {plant}: wraps nothing of a consumer; see docs/faults.md")
        return make_consumer(self.name, faults)

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

"""What groups of rules that stand outside of the machine may rely on."""

from __future__ import annotations

from tierfuzz.program import FleetConfig, Generate, Operation


class MachinePart:
    """A part of the machine, which has the rest."""

    config: FleetConfig
    sent: list[Generate]

    def name(self) -> str:
        """An id for the next operation."""
        raise NotImplementedError

    def apply(self, operation: Operation) -> None:
        """Carry out one operation."""
        raise NotImplementedError

    def push_off(self, pick: int) -> None:
        """Turn the device pool over on the worker of an earlier request."""
        raise NotImplementedError

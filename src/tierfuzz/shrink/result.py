"""What a search for a smaller program gives."""

from __future__ import annotations

from typing import Literal

import msgspec

from tierfuzz.program import Program
from tierfuzz.verdict import Verdict

RESULT_FORMAT = 1


class ShrinkResult(msgspec.Struct, frozen=True):
    """The smallest failing program found, and how sure that is.

    `verdict`: its violation. `was`: operations of the program that the search began with. `runs`,
    `operations`, `seconds`: what the search took, interrupted parts included. `minimal`: True when each
    removal of one operation passes; False when one failed too, though too seldom to be accepted; None when
    that was not checked for all. `unchecked`: what could not be checked, in words, () when nothing.
    `failed` of `tried` runs of the result failed. `stopped`: why the search ended early, or "".
    """

    program: Program
    verdict: Verdict
    was: int
    runs: int
    operations: int
    seconds: float
    minimal: bool | None
    unchecked: tuple[str, ...]
    failed: int
    tried: int
    stopped: str = ""
    format: int = RESULT_FORMAT
    kind: Literal["shrunk"] = "shrunk"

    @property
    def length(self) -> int:
        """Operations of the result."""
        return len(self.program.operations)

    @property
    def sentence(self) -> str:
        """For people: lengths, runs, and what is sure."""
        text = f"{self.verdict.oracle}: {self.was} operations became {self.length}"
        text = f"{text} in {self.runs} runs ({self.operations} operations, {self.seconds:.1f} s)"
        if self.failed < self.tried:
            text += f"; it failed {self.failed} of {self.tried} times"
        return f"{text}; {self._sure}"

    @property
    def _sure(self) -> str:
        if self.unchecked:
            return f"not checked: {', '.join(self.unchecked)}"
        if self.minimal:
            return "without any one operation it passes"
        return "an operation less failed too, though too seldom to be accepted"

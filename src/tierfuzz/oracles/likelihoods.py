"""Contents by log probabilities: wherever a prefix comes from, the first output is as likely (7.1)."""

from __future__ import annotations

from collections.abc import Mapping

from tierfuzz.observation import Observation, TierSplit
from tierfuzz.oracles.docket import Docket

# Honest answers of 0.5.17 differ by up to 0.14 with 4 layers and 0.40 with 36: decode and prefill differ in
# the last bits, and blocks are summed in another order. Twice that is no noise any more.
FEW, MANY = (4, 0.14), (36, 0.40)
MARGIN = 2.0


def tolerance_of(layers: int) -> float:
    """The largest difference of log probabilities that an honest answer may show."""
    share = min(1.0, max(0.0, (layers - FEW[0]) / (MANY[0] - FEW[0])))
    return MARGIN * (FEW[1] + share * (MANY[1] - FEW[1]))


def difference(left: Mapping[int, float], right: Mapping[int, float]) -> float:
    """Largest difference over the tokens that both know; infinite when they share none."""
    common = left.keys() & right.keys()
    return max((abs(left[token] - right[token]) for token in common), default=float("inf"))


class Likelihoods:
    """The first answer to each prompt, and what later ones are held against."""

    def __init__(self, docket: Docket, tolerance: float) -> None:
        self._docket = docket
        self._tolerance = tolerance
        self._answers: dict[tuple[int, ...], tuple[dict[int, float], str, str]] = {}

    def clear(self) -> None:
        """Forget the answers (a new case)."""
        self._answers.clear()

    def check(self, tokens: tuple[int, ...], operation: str, seen: Observation) -> None:
        """Compare with the first answer to this prompt."""
        now, served = dict(seen.first_logprobs), _served(seen.split or TierSplit())
        if tokens not in self._answers:
            self._answers[tokens] = (now, operation, served)
            return
        before, first, other = self._answers[tokens]
        apart = difference(before, now)
        self._docket.check(
            apart <= self._tolerance,
            "content",
            operation,
            f"served {served}, log probabilities of the first output differ by {apart:.2f} from those of "
            f"{first}, served {other}; honest answers by at most {self._tolerance:.2f}",
            facts={"difference": round(apart, 3), "tolerance": self._tolerance, "first": first},
        )


def _served(split: TierSplit) -> str:
    return f"{split.device} tokens from device, {split.host} from host, {split.storage} from storage"

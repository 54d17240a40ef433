"""What an engine shows before its contents are judged: a changed token, and the noise of honest answers."""

from __future__ import annotations

from statistics import median

from tierfuzz.contents.asking import Asker, Tokens, apart, other
from tierfuzz.contents.talks import CONTROLS, converse
from tierfuzz.errors import Vacuous
from tierfuzz.oracles.contents import Comparison, Figures
from tierfuzz.worker.http import Answer

LENGTH = 47
PROMPTS = 5
ROUNDS = 2


def measure(asker: Asker) -> tuple[Figures, list[Comparison]]:
    """The figures, and the honest comparisons that they rest on; Vacuous without enough of a gap."""
    prompts = [asker.fresh(LENGTH) for _ in range(PROMPTS)]
    cold = [_cold(asker, tokens) for tokens in prompts]
    again = [_cold(asker, tokens) for tokens in prompts]
    honest = [one for _ in range(ROUNDS) for one in converse(asker, CONTROLS)]
    figures = Figures(
        cold=max(apart(left, right) for left, right in zip(cold, again, strict=True)),
        early=_changed(asker, prompts, cold, 1),
        late=_changed(asker, prompts, cold, LENGTH - 2),
        device=max((one.difference for one in honest if one.served == "device"), default=0.0),
        prefilled=max((one.difference for one in honest if one.kind == "prefilled"), default=0.0),
    )
    if not figures.enough:
        raise Vacuous(f"contents of {asker.worker.launch.base_url} prove nothing: {figures.described()}")
    return figures, honest


def _cold(asker: Asker, tokens: Tokens) -> Answer:
    asker.flush()
    return asker.ask(tokens)


def _changed(asker: Asker, prompts: list[Tokens], cold: list[Answer], at: int) -> float:
    """What another token at `at` does, in the median."""
    changed = [(*tokens[:at], other(tokens[at]), *tokens[at + 1 :]) for tokens in prompts]
    return median(apart(_cold(asker, tokens), before) for tokens, before in zip(changed, cold, strict=True))

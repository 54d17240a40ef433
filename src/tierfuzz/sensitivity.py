"""Shows that contents can be told apart at all, before a run relies on it: another prefix, another answer."""

from __future__ import annotations

from tierfuzz.errors import Vacuous
from tierfuzz.fleet import Fleet, Worker
from tierfuzz.oracles.likelihoods import difference, tolerance_of
from tierfuzz.prompts import Piece, tokens_of
from tierfuzz.worker.http import Call

LENGTH = 48
TOP = 20


def prove_sensitivity(fleet: Fleet) -> None:
    """Vacuous when one other token of a prompt changes its log probabilities no more than noise does."""
    if fleet.config.weights != "random":
        return
    least = tolerance_of(fleet.config.layers)
    for worker in fleet.workers:
        apart = max(_apart(worker, changed) for changed in (0, LENGTH // 2, LENGTH - 2))
        if not apart > least:
            raise Vacuous(
                f"contents of {worker.launch.base_url} prove nothing: another token in a prompt moves its "
                f"log probabilities by {apart:.2f}, honest answers differ by up to {least:.2f}"
            )


def _apart(worker: Worker, changed: int) -> float:
    """How far a prompt and the same with one other token are apart."""
    tokens = tokens_of((Piece(f"sensitivity-{changed}", 0, LENGTH),))
    other = (*tokens[:changed], tokens[changed] % 1000 + 1, *tokens[changed + 1 :])
    first, second = (
        dict(worker.client.generate(Call(f"s{changed}-{n}", t, 1, top_logprobs=TOP)).usable().first_logprobs)
        for n, t in enumerate((tokens, other))
    )
    return difference(first, second) if first and second else 0.0

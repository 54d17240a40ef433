"""Conversations that are continued: from device, from host, from storage, and cold."""

from __future__ import annotations

from dataclasses import dataclass, field

from tierfuzz.contents.asking import Asker, Tokens, compared, served_of
from tierfuzz.oracles.contents import Comparison
from tierfuzz.worker.http import Answer

KINDS = ("at", "before", "at", "after", "at", "cut", "prefilled")
CONTROLS = ("before", "after", "cut", "prefilled", "prefilled", "prefilled")
COMPARED_OUTPUTS = 4
MOST_OUTPUTS = 12
PREFILLED = 64  # tokens: as a multiple of these prefilled prefixes compare to the last bit
PAUSE_S = 0.02
SHARE = 0.4  # of the device pool, for the conversations of a round


@dataclass
class Talk:
    """One conversation: its first prompt and answer, and the prompt that continues it."""

    kind: str
    prompt: Tokens
    outputs: int
    whole: int = 0
    next: Tokens = ()
    answers: list[Answer] = field(default_factory=list)


def talk(asker: Asker, kind: str) -> Talk:
    """A conversation whose answer ends where the kind says."""
    page, rng = asker.page, asker.random
    if kind == "prefilled":
        return Talk(kind, asker.fresh(PREFILLED * rng.randint(1, 2)), 0)
    if page == 1:
        return Talk(
            "at" if kind == "at" else "cut", asker.fresh(rng.randint(16, 64)), rng.randint(2, MOST_OUTPUTS)
        )
    outputs = rng.randint(2, min(MOST_OUTPUTS, max(2, page - 2)))
    end = page * rng.randint(2, 5) + {"before": -1, "after": 1}.get(kind, 0)
    return Talk(kind, asker.fresh(max(1, end - outputs)), outputs)


def converse(asker: Asker, kinds: tuple[str, ...], from_device: bool = True) -> list[Comparison]:
    """Prime conversations, ask for each from device, fill, ask again from host, and at last cold."""
    talks = _prime(asker, kinds)
    asker.rest()
    if from_device:
        _ask_all(asker, talks)
    asker.fill()
    asker.rest()
    _ask_all(asker, talks)
    if asker.fleet.config.storage_threshold:
        asker.flush()
        _ask_all(asker, talks)
        asker.rest()
        asker.worker.client.clear_storage()
    asker.flush()
    _ask_all(asker, talks)
    asker.flush()
    return [one for each in talks for one in _compare(each)]


def _prime(asker: Asker, kinds: tuple[str, ...]) -> list[Talk]:
    """As many conversations as fit beside their continuations, in random order."""
    wanted, talks = list(kinds), []
    asker.random.shuffle(wanted)
    room = asker.fleet.config.device_tokens * SHARE
    for kind in wanted:
        each = talk(asker, kind)
        room -= len(each.prompt) + each.outputs + asker.page
        if room < 0:
            break
        talks.append(_primed(asker, each))
        asker.fleet.clock.sleep(PAUSE_S)
    return talks


def _primed(asker: Asker, each: Talk) -> Talk:
    """Ask, and know how it goes on: its whole pages and one token more."""
    answer = asker.ask(each.prompt, each.outputs)
    said = (*each.prompt, *answer.output_ids)
    each.whole = len(said) // asker.page * asker.page
    if each.kind == "cut":
        each.whole -= asker.page
    each.next = (*said[: each.whole], *asker.fresh(1))
    return each


def _ask_all(asker: Asker, talks: list[Talk]) -> None:
    for each in talks:
        each.answers.append(asker.ask(each.next, COMPARED_OUTPUTS))


def _compare(each: Talk) -> list[Comparison]:
    *warm, cold = each.answers
    if served_of(cold, each.whole) != "fresh":
        return []
    tiers = [(answer, served_of(answer, each.whole)) for answer in warm]
    return [
        compared(each.kind, tier, answer, cold, len(each.prompt), each.outputs)
        for answer, tier in tiers
        if tier is not None and tier != "fresh"
    ]

"""Oracles about a consumer: what it claims of known prompts, beside what it was told of them.

The truth here is the ledger of the messages that the consumer was sent, so nothing hangs on whether a worker
is right about itself: whether its events are true is for other oracles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tierfuzz.consumers.link import RANK, Link
from tierfuzz.events import Tier
from tierfuzz.hashing import page_hashes
from tierfuzz.oracles.docket import Docket, Facts
from tierfuzz.program import FleetConfig
from tierfuzz.traits import Traits
from tierfuzz.verdict import Verdict

ASKED = (Tier.DEVICE, Tier.HOST)
MOST_ASKED = 40  # newest prompts that are asked about at each rest; all of them at the end of a case
Tokens = tuple[int, ...]


@dataclass
class _Prompt:
    """A prompt that was sent: content of its whole pages, and their names in each namespace."""

    tokens: Tokens
    content: tuple[int, ...]
    names: dict[str, tuple[int, ...]] = field(default_factory=dict)


class RouterJudge:
    """Told in order what was sent and what happened; `take_verdicts`, `held` and `reach` are the output.

    Events name no namespace, so a page counts as held where it is held in any. Where several namespaces have
    asked for a page and the consumer says something else, nobody can say who is right: unknown.
    """

    def __init__(self, fleet: FleetConfig, link: Link, traits: Traits) -> None:
        self.link = link
        self.reach: Counter[str] = Counter()
        self.operation = ""
        self._page = fleet.page_size
        self._traits = traits
        self._pages = {
            Tier.DEVICE: fleet.device_tokens // fleet.page_size,
            Tier.HOST: fleet.host_tokens // fleet.page_size,
        }
        self._prompts: dict[Tokens, _Prompt] = {}
        self._namespaces = {""}
        self._owners: dict[int, set[str]] = {}
        self._dockets = [Docket(worker) for worker in range(fleet.places)]

    # what happens ----------------------------------------------------------------------------------
    def sent(self, namespace: str, tokens: Tokens) -> None:
        """A request was sent to some worker."""
        prompt = self._prompts.pop(tokens, None) or _Prompt(tokens, page_hashes(tokens, self._page))
        self._prompts[tokens] = prompt  # the newest last
        self._namespaces.add(namespace)
        for page in prompt.content:
            self._owners.setdefault(page, set()).add(namespace)

    def restart_consumer(self, replay: bool) -> None:
        """The consumer starts over."""
        self.link.restart_consumer(replay)
        self.reach["late-join"] += 1

    def deregister(self, worker: int, rank: int) -> None:
        """The consumer is told that a rank is gone."""
        self.link.deregister(worker, rank)
        self.reach["deregistered"] += 1

    @property
    def held(self) -> Counter[str]:
        """Checks that held, by oracle."""
        return sum((docket.held for docket in self._dockets), Counter())

    def take_verdicts(self) -> list[Verdict]:
        """Violations and unknowns since the last call."""
        return [verdict for docket in self._dockets for verdict in docket.take()]

    # checks ----------------------------------------------------------------------------------------
    def rested(self, worker: int) -> None:
        """A worker is at rest, and the consumer was given everything that it has published."""
        newest = list(self._prompts.values())[-MOST_ASKED:]
        self._ask(worker, newest)
        self._route(newest)

    def audit(self, worker: int) -> None:
        """A worker is about to be emptied, or the case ends: every prompt, and how much is claimed in all."""
        prompts = list(self._prompts.values())
        self._ask(worker, prompts)
        self._capacity(worker, prompts)
        self._route(prompts)

    def _ask(self, worker: int, prompts: Sequence[_Prompt]) -> None:
        said: set[str] = set()
        for prompt in prompts if worker not in self.link.unheard else ():
            claims = self.link.consumer.overlap(prompt.tokens).get((worker, RANK), {})
            if (worker, RANK) in self.link.deregistered:
                self._gone(worker, max(claims.values(), default=0), said)
                continue
            rights = {tier: self._right(worker, prompt, (tier,)) for tier in ASKED}
            self.reach["router-host-only"] += rights[Tier.HOST] > rights[Tier.DEVICE]
            for tier, right in rights.items():
                self._compare(worker, prompt, tier, claims.get(tier, 0), right, said)

    def _compare(
        self, worker: int, prompt: _Prompt, tier: Tier, claimed: int, right: int, said: set[str]
    ) -> None:
        docket = self._dockets[worker]
        slug = "router-miss" if claimed < right else "router-stale"
        if claimed == right:
            docket.holds("router-miss", bool(right))
            docket.holds("router-stale")
        elif slug not in said:  # once a rest is enough
            said.add(slug)
            told = f"{claimed} pages on {tier} of a prompt of {len(prompt.content)}; its messages say {right}"
            if self._ambiguous(prompt, max(claimed, right)) or (slug == "router-miss" and self._missing):
                docket.unknown(slug, self.operation, f"{told}, but not all of them, or not whose")
                return
            facts: Facts = {"tier": str(tier), "claimed": claimed, "told": right}
            docket.violation(slug, self.operation, f"the consumer claims {told}", facts=facts)

    def _gone(self, worker: int, claimed: int, said: set[str]) -> None:
        if claimed == 0:
            self._dockets[worker].holds("router-leak")
        elif "router-leak" not in said:
            said.add("router-leak")
            message = f"the consumer claims {claimed} pages of a rank that was deregistered"
            self._dockets[worker].violation("router-leak", self.operation, message, facts={"pages": claimed})

    def _capacity(self, worker: int, prompts: Sequence[_Prompt]) -> None:
        """Different pages of known prompts that are claimed; there may be others."""
        claimed: dict[Tier, set[int]] = {tier: set() for tier in ASKED}
        for prompt in prompts:
            claims = self.link.consumer.overlap(prompt.tokens).get((worker, RANK), {})
            for tier in ASKED:
                claimed[tier].update(prompt.content[: claims.get(tier, 0)])
        for tier, pages in claimed.items():
            self._dockets[worker].check(
                len(pages) <= self._pages[tier],
                "router-leak",
                self.operation,
                f"the consumer claims {len(pages)} pages on {tier}; the pool has {self._pages[tier]}",
                facts={"tier": str(tier), "pages": len(pages), "capacity": self._pages[tier]},
            )

    def _route(self, prompts: Sequence[_Prompt]) -> None:
        """Equal loads: who holds more has to get the request."""
        workers = [w for w in range(len(self._dockets)) if (w, RANK) not in self.link.deregistered]
        if self._missing or len(workers) < 2:
            return
        for prompt in prompts:
            holds = {worker: self._right(worker, prompt, ASKED) for worker in workers}
            most = max(holds.values())
            if min(holds.values()) == most:
                continue
            self.reach["route-contested"] += 1
            chosen = self.link.consumer.route(prompt.tokens, dict.fromkeys(workers, 0.0))
            if holds.get(chosen) == most:
                self._dockets[chosen].holds("wrong-worker")
            elif self._ambiguous(prompt, most):
                self._dockets[chosen].unknown("wrong-worker", self.operation, "shared between namespaces")
            else:
                self._misrouted(prompt, chosen, holds)
                return

    def _misrouted(self, prompt: _Prompt, chosen: int, holds: dict[int, int]) -> None:
        most = max(holds.values())
        owner = next(worker for worker, pages in holds.items() if pages == most)
        self._dockets[chosen].violation(
            "wrong-worker",
            self.operation,
            f"a prompt of {len(prompt.content)} pages is routed to where {holds.get(chosen, 0)} of them are; "
            f"worker {owner} has {most}, and loads are equal",
            facts={"chosen": holds.get(chosen, 0), "owner": owner, "most": most},
        )

    # truth -----------------------------------------------------------------------------------------
    @property
    def _missing(self) -> bool:
        """Something was not told, so that claiming less may be right."""
        return bool(self.link.partial or self.link.unheard)

    def _right(self, worker: int, prompt: _Prompt, tiers: Sequence[Tier]) -> int:
        """Leading pages that the worker's messages put into one of these tiers, in any namespace."""
        ledger = self.link.ledgers[worker]
        chains = [self._names(prompt, namespace) for namespace in self._namespaces]
        for depth, names in enumerate(zip(*chains, strict=True)):
            if not any(ledger.resident(RANK, tier, name) for tier in tiers for name in names):
                return depth
        return len(prompt.content)

    def _names(self, prompt: _Prompt, namespace: str) -> tuple[int, ...]:
        if namespace not in prompt.names:
            seed = self._traits.seed(namespace)
            prompt.names[namespace] = page_hashes(prompt.tokens, self._page, seed)
        return prompt.names[namespace]

    def _ambiguous(self, prompt: _Prompt, pages: int) -> bool:
        return any(len(self._owners[page]) > 1 for page in prompt.content[:pages])

"""The life of one request inside the cache: match, own slots, inserts, release (reference 5.1, 5.2, 2.1)."""

from __future__ import annotations

from tierfuzz.model.cache import TieredCache
from tierfuzz.model.config import EngineConfig
from tierfuzz.model.copies import Copy
from tierfuzz.model.node import Node
from tierfuzz.model.request import Active, Reply, Request
from tierfuzz.model.rules import Rules
from tierfuzz.model.sequence import PagedSequence
from tierfuzz.model.unified import UnifiedCache
from tierfuzz.observation import TierSplit
from tierfuzz.traits import namespace_seed


class Running:
    """Requests waiting, being chunked and running, over one cache."""

    def __init__(self, config: EngineConfig, rules: Rules) -> None:
        self.config = config
        self.rules = rules
        self.cache: TieredCache = (UnifiedCache if rules.unified else TieredCache)(config, rules)
        self.waiting: list[Active] = []
        self.running: list[Active] = []
        self.chunked: Active | None = None

    # arrival ---------------------------------------------------------------------------------------
    def enqueue(self, request: Request) -> None:
        """Queue a request."""
        seed = b"" if self.rules.namespace_aliasing else namespace_seed(request.namespace)
        self.waiting.append(Active(request, PagedSequence(request.tokens, self.config.page_size, seed)))

    def prefetch_landed(self, _: Active) -> bool:
        """The storage prefetch of a waiting request is done, or there is none (5.8)."""
        return True

    def forget_prefetch(self, active: Active) -> None:
        """A waiting request goes away: give up its prefetch."""

    def landed(self, copy: Copy) -> None:
        """A copy has landed."""
        self.cache.acknowledge(copy)

    # admission -------------------------------------------------------------------------------------
    def match_prompt(self, active: Active) -> tuple[list[Node], list[Node]]:
        """Device part and host-only part of the longest usable cached prefix (5.1)."""
        run = active.sequence.run(self.matchable_pages(active))
        path = self.cache.match(active.request.namespace, run)
        cut = next((i for i, node in enumerate(path) if node.device is None), len(path))
        return path[:cut], path[cut:]

    def matchable_pages(self, active: Active) -> int:
        """Whole pages that a match may use: the last token is always computed, logprobs cap it (5.1)."""
        limit = active.prompt_length - self.rules.match_keeps_last
        start = active.request.logprob_start
        if start is not None and start >= 0 and self.rules.logprob_caps:
            limit = min(limit, start)
        return max(0, limit) // self.config.page_size

    def start(self, active: Active, prefix: list[Node], host: list[Node], loaded: bool) -> None:
        """Admit: lock the prefix, take its slots, account for it (2.1)."""
        size = self.config.page_size
        active.slots = [slot for node in prefix for slot in (node.device or ())]
        active.owned_from = len(active.slots)
        active.prefix = active.computed = len(active.slots) * size
        active.node = prefix[-1] if prefix else None
        self.cache.lock(active.node)
        host_tokens = sum(len(node) for node in host) * size
        if not active.retractions:  # counted once, and never again after a retraction (2.1)
            active.cached, active.split = self.account(active, host_tokens, loaded)

    def account(self, active: Active, host_tokens: int, loaded: bool) -> tuple[int, TierSplit | None]:
        """cached_tokens and its split; `host_tokens` were matched on host and, if `loaded`, brought in."""
        total = active.prefix
        if not loaded and not self.rules.declined_split_wrong:
            host_tokens = 0
        storage = self._from_storage(active, host_tokens)
        split = TierSplit(device=max(0, total - host_tokens), host=host_tokens - storage, storage=storage)
        for tier, tokens in (("device", split.device), ("host", split.host), ("storage", split.storage)):
            self.cache.counters[f"cached_{tier}_tokens"] += tokens
        self.cache.counters["prefill_tokens"] += active.prompt_length - total
        return total, split if split.total else None

    def _from_storage(self, active: Active, host_tokens: int) -> int:
        """Tokens of the loaded part that a prefetch brought for this request (5.8)."""
        if not self.rules.storage_by_span:
            return min(host_tokens, active.loaded_from_storage)
        size = self.config.page_size
        first, last = active.fetched
        return max(0, min(last * size, active.prefix) - max(first * size, active.prefix - host_tokens))

    # slots -----------------------------------------------------------------------------------------
    def allocate(self, active: Active, pages: int) -> None:
        """Give a request `pages` more page slots of its own."""
        active.slots += self.cache.device.take(pages)

    # inserts ---------------------------------------------------------------------------------------
    def continue_chunked(self) -> None:
        """Before the next chunk: insert what the chunks so far have computed, match again (5.2)."""
        active = self.chunked
        if active is None or active.computed == active.prefix:
            return
        if active.aborted:
            self.chunked = None
            self.drop_chunked(active)
            return
        if self.rules.chunk_inserts_first:
            pages = active.computed // self.config.page_size
            self.insert_pages(active, pages, counted=self.rules.chunk_counts_hits)

    def drop_chunked(self, active: Active) -> None:
        """End an aborted request whose prompt is not complete."""
        raise NotImplementedError

    def insert_prompt(self, active: Active) -> None:
        """After prefill, if more outputs are due: the prompt's whole pages (5.2)."""
        self.insert_pages(active, active.prompt_length // self.config.page_size, counted=True)

    def insert_pages(self, active: Active, pages: int, counted: bool) -> None:
        """Insert the first `pages` pages, then go on with the tree's slots and a lock on them."""
        run = active.sequence.run(pages)
        namespace = active.request.namespace
        spare = self.cache.insert(namespace, run, active.slots[:pages], counted, active.inserted)
        self.cache.device.give(spare)
        if counted:  # what no chunk has counted is left for the insert at the end of the prompt
            active.inserted = pages
        path = self._second_match(active, pages)
        active.slots[:pages] = [slot for node in path for slot in (node.device or ())]
        active.owned_from = pages
        node = path[-1] if path else None
        self.cache.lock(node)
        self.cache.unlock(active.node)
        active.node = node

    def _second_match(self, active: Active, pages: int) -> list[Node]:
        run = active.sequence.run(pages)
        if self.rules.second_match:
            capped = self.rules.second_match_capped and pages * self.config.page_size == active.prompt_length
            self.cache.match(active.request.namespace, run[: pages - 1] if capped else run)
        return self.cache.find(active.request.namespace, run)

    def insert_finished(self, active: Active) -> None:
        """At the end: prompt and outputs as far as they are committed, whole pages (5.2)."""
        tokens = active.committed
        if active.request.max_new == 0 and not self.rules.unreported_token:
            tokens = min(tokens, active.prompt_length)
        if self.rules.finish_drops_last and tokens > active.prompt_length:
            tokens -= 1
        pages = tokens // self.config.page_size
        run = active.sequence.run(pages)
        namespace = active.request.namespace
        spare = self.cache.insert(namespace, run, active.slots[:pages], True, active.inserted)
        self.release(active, keep=pages, spare=spare)

    def release(self, active: Active, keep: int, spare: list[int] | None = None) -> None:
        """Give back duplicate slots and the pages beyond `keep`, and unlock (5.2, 6.1)."""
        self.cache.device.give((spare or []) + active.slots[keep:])
        self.cache.unlock(active.node)
        active.node = None
        active.finished = True

    def reply(self, active: Active) -> Reply:
        """The answer of a started request."""
        raise NotImplementedError

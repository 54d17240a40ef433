"""Requests and replies of the modelled worker, and what is known of a request while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tierfuzz.events import KvEvent
from tierfuzz.model.node import Node
from tierfuzz.model.sequence import PagedSequence
from tierfuzz.observation import TierSplit

if TYPE_CHECKING:
    from tierfuzz.model.prefetch import Prefetch


@dataclass(frozen=True)
class Request:
    """One request: token ids, and how many outputs it wants (0: prefill only).

    `forced_outputs` replaces the model's own output tokens (to follow a recording).
    """

    rid: str
    tokens: tuple[int, ...]
    max_new: int
    namespace: str = ""
    logprob_start: int | None = None
    forced_outputs: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Reply:
    """The answer to a request; counts are None for one that was aborted before it started."""

    rid: str
    output_ids: tuple[int, ...]
    prompt_tokens: int | None
    cached_tokens: int | None
    split: TierSplit | None
    finish: Literal["length", "abort"]
    abort_message: str = ""
    retractions: int = 0
    state: int = 0  # what the first output was sampled from


@dataclass(frozen=True)
class TickResult:
    """What one scheduler iteration let out, in order: event batches, then replies.

    `progress` is False when nothing ran, landed or left: only a copy or a new request can change that.
    """

    batches: list[list[KvEvent]] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    progress: bool = False


@dataclass(frozen=True)
class Gauges:
    """Levels of one worker; *_used, *_total, *_free, evictable and locked in tokens, the rest counts."""

    host_used: int
    host_total: int
    device_free: int
    device_total: int
    device_evictable: int
    device_locked: int
    running: int
    waiting: int
    pending_copies: int


class Active:
    """A request between submission and reply. Positions and lengths in tokens, `slots` one a page."""

    def __init__(self, request: Request, sequence: PagedSequence) -> None:
        self.request = request
        self.sequence = sequence
        self.prompt_length = len(request.tokens)
        self.slots: list[int] = []
        self.owned_from = 0  # pages before this one belong to the tree
        self.inserted = 0  # pages that this request has inserted and counted as hits
        self.node: Node | None = None  # deepest locked node
        self.prefix = 0  # tokens served from the cache
        self.computed = 0  # tokens whose prefill has been launched
        self.committed = 0  # tokens whose KV is or is being written
        self.sampled: list[int] = []
        self.reported: list[int] = []
        self.split: TierSplit | None = None
        self.cached: int | None = None
        self.prefetch: Prefetch | None = None
        self.fetched = (0, 0)  # pages that a prefetch brought or found
        self.loaded_from_storage = 0
        self.digest = 0  # rolling checksum over the pages actually used
        self.state: int | None = None  # what the first output was sampled from
        self.aborted = False
        self.finished = False
        self.retractions = 0

    def again(self) -> Active:
        """The same request after a retraction: what it has answered is now part of what it has to prefill.

        A token that was sampled and not reported is sampled anew. What was accounted stays (2.1).
        """
        tokens = (*self.request.tokens, *self.reported)
        active = Active(self.request, self.sequence.beginning(len(tokens)))
        active.prompt_length = len(tokens)
        active.sampled, active.reported = list(self.reported), list(self.reported)
        active.cached, active.split = self.cached, self.split
        active.inserted, active.aborted = self.inserted, self.aborted
        active.retractions = self.retractions + 1
        active.state = self.state
        return active

    @property
    def wants_more(self) -> bool:
        """More outputs are due."""
        return len(self.reported) < self.request.max_new

    @property
    def prefilled(self) -> bool:
        """The whole prompt has been launched."""
        return self.computed >= self.prompt_length

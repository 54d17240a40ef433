"""Programs: what a run does, as data; versioned JSON on disk.

A program never holds tokens: prompts are pieces of named streams (tierfuzz.prompts), and a piece of the
stream "@ID" stands for the output tokens of the earlier request ID of the same program.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from tierfuzz.errors import FormatError
from tierfuzz.prompts import Piece

PROGRAM_FORMAT = 1

Role = Literal["prime", "repeat", "filler", "probe", "fork", "grow", "exact", "namespaced"]
WritePolicy = Literal["write_through", "write_back", "write_through_selective"]
WRITE_POLICIES: tuple[WritePolicy, ...] = ("write_through", "write_back", "write_through_selective")


class Generate(msgspec.Struct, frozen=True, tag="generate", omit_defaults=True):
    """One request. `outputs` tokens are asked for (0: prefill only); `id` names it inside the program.

    `abort_after_s`: None, or the delay in seconds after which the client aborts it (0.0: at once).
    """

    id: str
    worker: int
    prompt: tuple[Piece, ...]
    outputs: int = 0
    role: Role = "prime"
    namespace: str | None = None
    logprob_start: int | None = None
    abort_after_s: float | None = None


class Fill(msgspec.Struct, frozen=True, tag="fill", omit_defaults=True):
    """Disjoint fresh traffic on one worker, as a share of that worker's device pool.

    The runner sends prompts of `prompt_share` of the device pool each, from the fresh stream `stream`,
    until at least `share` of the pool (>= 1.0 turns it over) has been sent; with a `target`, the id of an
    earlier request, it then goes on until no event claims a device copy of that prompt, within a bound.
    """

    id: str
    worker: int
    stream: str
    share: float = 1.0
    prompt_share: float = 0.125
    outputs: int = 0
    target: str = ""


class Burst(msgspec.Struct, frozen=True, tag="burst"):
    """Requests sent together, so that they overlap on their workers."""

    id: str
    requests: tuple[Generate, ...]


class Idle(msgspec.Struct, frozen=True, tag="idle"):
    """Send nothing until the worker is seen at rest (or the bound passes)."""

    id: str
    worker: int


class Flush(msgspec.Struct, frozen=True, tag="flush"):
    """Empty device and host of one worker (/flush_cache with a timeout)."""

    id: str
    worker: int


class Hold(msgspec.Struct, frozen=True, tag="hold"):
    """Simulated worker only: copies between tiers stop completing."""

    id: str
    worker: int


class Release(msgspec.Struct, frozen=True, tag="release"):
    """Simulated worker only: heal of Hold; held copies complete."""

    id: str
    worker: int


class Restart(msgspec.Struct, frozen=True, tag="restart"):
    """Stop the worker process and start it again at the same address, empty."""

    id: str
    worker: int


class ClearStorage(msgspec.Struct, frozen=True, tag="clear_storage"):
    """Empty the storage tier of one worker."""

    id: str
    worker: int


class Attach(msgspec.Struct, frozen=True, tag="attach"):
    """Attach storage at run time (or keep it), and ask for a write policy with it; may be refused."""

    id: str
    worker: int
    policy: WritePolicy


class Detach(msgspec.Struct, frozen=True, tag="detach"):
    """Detach storage at run time; what it holds stays."""

    id: str
    worker: int


class RestartConsumer(msgspec.Struct, frozen=True, tag="restart_consumer", omit_defaults=True):
    """The consumer of the fleet's events starts over, empty, and knows every worker again.

    `replay`: it can have everything of this case again; else only what is published from now on. `worker`
    says where in the fleet it is written down, no more: a consumer has one memory.
    """

    id: str
    worker: int
    replay: bool = True


class Deregister(msgspec.Struct, frozen=True, tag="deregister", omit_defaults=True):
    """The consumer is told that a worker's rank is gone, until the consumer restarts; the worker works on."""

    id: str
    worker: int
    rank: int = 0


ConsumerOperation = RestartConsumer | Deregister
Operation = (
    Generate
    | Fill
    | Burst
    | Idle
    | Flush
    | Hold
    | Release
    | Restart
    | ClearStorage
    | Attach
    | Detach
    | ConsumerOperation
)


class Attached(msgspec.Struct, frozen=True, omit_defaults=True):
    """A worker that runs already: its URL and event endpoints (`bind`: it connects to ours)."""

    url: str
    events: str = ""
    replay: str = ""
    topic: str = ""
    bind: bool = False


class FleetConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the workers of a program are: everything needed to start them again. Sizes in tokens.

    `storage_threshold`: fewest tokens worth a prefetch from a storage folder of the worker; 0: no storage.
    `patience_s`: seconds until a reply, a flush or rest counts as not coming; 0: as long as suits the engine.
    `ranks`: data-parallel ranks of a worker, each with a cache and event sockets of its own. Programs count
    them like workers: number worker * ranks + rank (`places` in all).
    `consumer`: a router or index that hears the events and is judged too (tierfuzz.consumers); "": none.
    Real engines only: `engine_version` ("": the driver's own), `cuda_graphs`, `overlap` (of scheduling),
    `tree_core` (python or rust; "": the version's own), `weights` (random ones make contents comparable, by
    log probabilities) and `layers` of the model (0: as suits the weights). `attached`: workers that run
    already, which are emptied and changed only if `destructive`; without, every case has its own streams.
    """

    engine: str = "sim"
    policy: WritePolicy = "write_through"
    workers: int = 2
    page_size: int = 16
    device_tokens: int = 1024
    host_ratio: float = 2.0
    chunked_prefill: int = 8192
    profile: str = "default"
    plants: tuple[str, ...] = ()
    ack_delay_ms: float = 0.0
    step_delay_ms: float = 0.0
    seed: int = 0
    extra_args: tuple[str, ...] = ()
    storage_threshold: int = 0
    patience_s: float = 0.0
    ranks: int = 1
    consumer: str = ""
    engine_version: str = ""
    cuda_graphs: bool = False
    overlap: bool = True
    tree_core: str = ""
    weights: Literal["dummy", "random"] = "dummy"
    layers: int = 0
    attached: tuple[Attached, ...] = ()
    destructive: bool = False

    @property
    def places(self) -> int:
        """Caches in all, which programs name by number: every rank of every worker."""
        return self.workers * self.ranks

    @property
    def host_tokens(self) -> int:
        """Host pool size in tokens: whole pages of device_tokens * host_ratio plus one page (reference 1)."""
        return (int(self.device_tokens * self.host_ratio) // self.page_size + 1) * self.page_size

    @property
    def starts_empty(self) -> bool:
        """Workers may be emptied before a case, so that nothing else is in them."""
        return self.destructive or not self.attached


class Program(msgspec.Struct, frozen=True):
    """A fleet and the operations to run on it, in order."""

    fleet: FleetConfig
    operations: tuple[Operation, ...]
    format: int = PROGRAM_FORMAT
    kind: Literal["program"] = "program"


def dump_program(program: Program) -> bytes:
    """Serialise to JSON, ending in a newline."""
    return msgspec.json.format(msgspec.json.encode(program), indent=1) + b"\n"


def load_program(path: Path) -> Program:
    """Read a program file; FormatError says what is wrong with it."""
    data = path.read_bytes()
    try:
        version = msgspec.json.decode(data, type=dict).get("format")
        if version != PROGRAM_FORMAT:
            raise FormatError(f"{path}: program format {version!r}; expected format {PROGRAM_FORMAT}")
        return msgspec.json.decode(data, type=Program)
    except msgspec.DecodeError as error:
        raise FormatError(f"{path}: not a program ({error}); expected the JSON of `program.json`") from error

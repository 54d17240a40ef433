"""What events claim: copies of each block in each tier, and what does not fit with what came before."""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from typing import Any

import msgspec

TIERS = {"GPU": "device", "CPU": "host", "CPU_PINNED": "host", "CPU_TIER1": "host", "CPU_TIER2": "host"}
TIERS |= {"DISK": "storage", "STORAGE": "storage", "EXTERNAL": "external"}
KEYS = ("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium")


class Book:
    """`odd`: (oracle, text) of what does not fit; `told`: blocks that events have named lately; `left`: those
    that were held nowhere since; `loads`: blocks stored on device while host had them; `written`: blocks that
    were on host at some time, and so are in storage; `names`: what to call a block."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self.setup = setup
        self.copies: dict[str, Counter[int]] = {tier: Counter() for tier in ("device", "host")}
        self.names: dict[int, tuple[str, int]] = {}
        self.owners: dict[int, set[str]] = {}
        self.odd: list[tuple[str, str]] = []
        self.told: set[int] = set()
        self.left: set[int] = set()
        self.written: set[int] = set()
        self.loads: Counter[int] = Counter()
        self.strangers: set[int] = set()
        self.doubled: set[int] = set()  # had two copies in a tier: whose, events do not say
        self.revived: set[int] = set()  # may be on device without an event
        self.dropped: set[int] = set()  # left the device without a host copy
        self.newest: list[int] = []  # pages of the newest request, where it was alone and has ended well
        self.hits: Counter[int] = Counter()  # completed requests over a block while it was on device

    def on(self, tier: str, block: int) -> bool:
        return self.copies[tier][block] > 0

    def held(self, block: int) -> bool:
        return self.on("device", block) or self.on("host", block)

    def name(self, request: str, namespace: str, blocks: list[int]) -> None:
        """These are the pages of a request."""
        for index, block in enumerate(blocks):
            self.names.setdefault(block, (request, index))
            self.owners.setdefault(block, set()).add(namespace)

    def ours(self, block: int) -> bool:
        """A page of a request, or of a worker that was empty at first: others may have been there before."""
        return self.setup["empty"] or block in self.names

    def doubtful(self, block: int) -> bool:
        shared = len(self.owners.get(block, ())) > 1
        return shared or block in self.doubled or block in self.revived

    # events ----------------------------------------------------------------------------------------
    def apply(self, seq: int, payload: bytes) -> list[str]:
        """Book one batch; returns it in words, neighbours of one kind joined."""
        lines: list[tuple[str, list[int]]] = []
        try:
            _, events, *_ = msgspec.msgpack.decode(payload)
            for event in events:
                what, blocks = self._event(seq, event)
                if lines and lines[-1][0] == what:
                    lines[-1][1].extend(blocks)
                else:
                    lines.append((what, blocks))
        except Exception as error:  # whatever the decoder says of foreign bytes
            self.odd.append(("malformed-event", f"batch {seq}: {len(payload)} bytes: {error!r}"))
            lines.append((f"cannot be read: {error!r}", []))
        return [f"#{seq} {what} {self.text(blocks)}" for what, blocks in lines]

    def _event(self, seq: int, event: Any) -> tuple[str, list[int]]:
        kind, fields = _fields(event)
        if kind == "AllBlocksCleared":
            self.clear()
            return "everything cleared", []
        blocks, medium = [signed(block) for block in fields["block_hashes"]], fields.get("medium")
        tier = "device" if medium is None else TIERS.get(medium, "unknown")
        if medium is None:
            self.odd.append(
                ("missing-medium", f"batch {seq}: {kind} of {len(blocks)} blocks names no medium")
            )
        elif tier == "unknown":
            self.odd.append(("unknown-medium", f"batch {seq}: {kind} of {len(blocks)} blocks in {medium!r}"))
        self.told.update(blocks)
        if kind == "BlockStored":
            self._stored(seq, tier, blocks, fields)
        else:
            self._removed(seq, tier, blocks)
        return f"{'stored ' if kind == 'BlockStored' else 'removed'} {tier:6}", blocks

    def _stored(self, seq: int, tier: str, blocks: list[int], fields: dict[str, Any]) -> None:
        parent, tokens = fields.get("parent_block_hash"), fields.get("token_ids") or []
        if len(tokens) != len(blocks) * fields["block_size"]:
            told = f"{len(tokens)} token ids for {len(blocks)} blocks of {fields['block_size']}"
            self.odd.append(("malformed-event", f"batch {seq}: {told}"))
        wrong = parent is not None and (not self.held(signed(parent)) or signed(parent) in blocks)
        if parent is not None and wrong and self.ours(blocks[0]):
            where = "is its own parent" if signed(parent) in blocks else "names a parent that is held nowhere"
            self.odd.append(("orphan-parent", f"batch {seq}: {self.text(blocks[:1])} in {tier} {where}"))
        copies = self.copies.setdefault(tier, Counter())
        again = [block for block in blocks if copies[block] > 0 and self.ours(block)]
        if again:
            self.odd.append(("duplicate-store", f"batch {seq}: {self.text(again)} was in {tier} already"))
        if tier == "host":
            self._judge_order(seq, blocks)
            self.dropped.difference_update(blocks)
            self.written.update(blocks)
        if tier == "device":
            self.loads.update(block for block in blocks if self.on("host", block))
            self.strangers.update(block for block in blocks if block not in self.names and self.ours(block))
        copies.update(blocks)
        self.doubled.update(block for block in blocks if copies[block] > 1)

    def _judge_order(self, seq: int, blocks: list[int]) -> None:
        """A host copy is announced while the device copy is there, or after its removal: the policy says."""
        first = self.setup["removal_first"]
        if first is None:  # with storage, host copies come from there too
            return
        known = [block for block in blocks if self.ours(block) and not self.doubtful(block)]
        wrong = [block for block in known if self.on("device", block) == first]
        if wrong:
            when = "before" if first else "after"
            told = f"batch {seq}: host store of {self.text(wrong)} {when} its removal from device"
            self.odd.append(("event-order", told))

    def _removed(self, seq: int, tier: str, blocks: list[int]) -> None:
        copies = self.copies.setdefault(tier, Counter())
        absent = [block for block in blocks if copies[block] <= 0 and self.ours(block)]
        if absent:
            self.odd.append(("unmatched-removal", f"batch {seq}: {self.text(absent)} was not in {tier}"))
        for block in blocks:
            copies[block] = max(0, copies[block] - 1)
            self.left.update([] if self.held(block) else [block])
            if tier == "device":
                self.hits.pop(block, None)
                if not self.on("host", block):
                    self.dropped.add(block)

    def completed(self, blocks: list[int]) -> None:
        """A request over these blocks has ended well."""
        self.hits.update(block for block in blocks if self.on("device", block))

    def clear(self) -> None:
        """Nothing is claimed any more."""
        for copies in self.copies.values():
            copies.clear()
        for marks in (self.doubled, self.revived, self.dropped, self.strangers, self.hits):
            marks.clear()

    # at rest ---------------------------------------------------------------------------------------
    def at_rest(self, spare: int, flushed: bool) -> None:
        """What must be true when nothing is in flight. `spare`: blocks that need no explanation."""
        for tier, most in (("device", self.setup["device_pages"]), ("host", self.setup["host_pages"])):
            claimed = self.copies[tier].total()
            if claimed > most:
                told = f"events claim {claimed} {tier} blocks; the pool has {most} pages"
                self.odd.append(("over-capacity", told))
            if flushed and claimed:
                self.odd.append(("clear-scope", f"after a flush events still claim {claimed} {tier} blocks"))
        unknown = [block for block in self.strangers if block not in self.names]
        if len(unknown) > spare:
            told = f"{len(unknown)} blocks on device are pages of no prompt and no answer"
            self.odd.append(("unexplained-store", told))
        self.strangers.clear()
        bare = self._without_copy()
        if bare:
            self.odd.append(("no-backup", f"{self.text(bare)} has no host copy at rest"))

    def _without_copy(self) -> list[int]:
        """Blocks that the policy must have copied to host by now."""
        least = self.setup["backup_hits"]  # 0: nothing can be said of this fleet
        if not least:
            return []
        if self.setup["policy"] == "write_back":
            few = len(self.names) <= self.setup["host_pages"]  # else some may be lost for want of room
            return [b for b in self.dropped if few and self._known(b)]
        on_device = [block for block, count in self.copies["device"].items() if count > 0]
        if self.setup["backup_newest"]:  # older copies give way to those of the newest request
            fits = len(self.newest) <= self.setup["host_pages"]
            on_device = [block for block in self.newest if fits and self.on("device", block)]
        return [b for b in on_device if not self.on("host", b) and self.hits[b] >= least and self._known(b)]

    def _known(self, block: int) -> bool:
        return block in self.names and not self.doubtful(block)

    def text(self, blocks: list[int]) -> str:
        """Blocks by the request and page that they were first seen as: op0#0..9."""
        runs: list[list[Any]] = []
        for block in blocks:
            request, index = self.names.get(block, (str(block), -1))
            if runs and index >= 0 and runs[-1][0] == request and runs[-1][2] == index - 1:
                runs[-1][2] = index
            else:
                runs.append([request, index, index])
        shown = [f"{r}#{a}..{b}" if b > a else f"{r}#{a}" if a >= 0 else r for r, a, b in runs[:8]]
        return " ".join(shown) + (f" and {len(runs) - 8} more" if len(runs) > 8 else "")


def _fields(event: Any) -> tuple[str, dict[str, Any]]:
    """Both wire forms: a tagged array, or a map."""
    if isinstance(event, dict):
        return event["type"], event
    kind, *rest = event
    keys = KEYS if kind == "BlockStored" else ("block_hashes", "medium")
    return kind, dict(zip(keys, rest, strict=False))


def signed(block: Any) -> int:
    """Block hashes are signed 64-bit numbers; some engines send them unsigned, or the digest itself."""
    if isinstance(block, bytes):
        return int.from_bytes(block[:8], "big", signed=True)
    number = int(block)
    return number - (1 << 64) if number >= 1 << 63 else number


def page_hashes(tokens: list[int], page: int, seed: str) -> list[int]:
    """Block hashes of the whole pages of a prompt: a SHA-256 chain (`seed`: hex, of its namespace)."""
    digest, found = bytes.fromhex(seed), []
    for at in range(0, len(tokens) - page + 1, page):
        digest = hashlib.sha256(digest + struct.pack(f"<{page}I", *tokens[at : at + page])).digest()
        found.append(int.from_bytes(digest[:8], "big", signed=True))
    return found

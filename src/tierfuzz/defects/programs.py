"""One minimal program for each known defect that the step model can show: true when the defect shows."""

from __future__ import annotations

from collections.abc import Callable

from tierfuzz.defects.lab import Lab, spared
from tierfuzz.events import BlockRemoved
from tierfuzz.model.rules import rules_for

Program = Callable[[str], bool]


def b5(profile: str) -> bool:
    """A declined load-back is still reported as host."""
    lab = Lab(profile, page=4)
    lab.ask("A", 2, 1)
    lab.fill(10, 8)
    again = lab.ask("A", 2, 1)
    return again.split != (0, 0, 0) and again.reply is not None and again.reply.cached_tokens == 0


def b6(profile: str) -> bool:
    """Storage serves one namespace with the pages of another."""
    lab = Lab(profile, storage=True)
    lab.ask("A", 6, 1, namespace="a")
    lab.flush()
    return lab.ask("A", 6, 1).split[2] > 0


def b6b(profile: str) -> bool:
    """A namespaced request gains nothing from storage, though its pages are there."""
    lab = Lab(profile, storage=True)
    lab.ask("A", 6, 1, namespace="a")
    lab.flush()
    return lab.ask("A", 6, 1, namespace="a").split[2] == 0


def b6c(profile: str) -> bool:
    """Two namespaces announce the same block hashes."""
    lab = Lab(profile)
    first = lab.ask("A", 4, 1, namespace="a")
    second = lab.ask("A", 4, 1, namespace="b")
    return bool(set(first.stored("GPU")) & set(second.stored("GPU")))


def b7(profile: str) -> bool:
    """The recomputed last page of an exact multiple comes to the device without an event."""
    lab = Lab(profile)
    pages = lab.ask("A", 8).stored("GPU")
    lab.fill(9, 8)
    return pages[-1] not in lab.ask("A", 8).stored("GPU")


def b8(profile: str) -> bool:
    """write_through_selective copies the prompt of a first request."""
    return bool(Lab(profile, "write_through_selective").ask("A", 4, 3, outputs=2).stored("CPU_PINNED"))


def b9(profile: str) -> bool:
    """Host pages are evicted for a backup that fails all the same."""
    lab = Lab(profile, host=33)
    lab.ask("C", 20)
    lab.fill(3, 20)
    lab.ask("D", 12)
    big = lab.ask("A", 40)
    return bool(big.removed("CPU_PINNED")) and not big.stored("CPU_PINNED")


def b13(profile: str) -> bool:
    """A partial match makes the rest of the node younger than what was used before it."""
    lab = Lab(profile)
    tail = lab.ask("A", 16).stored("GPU")[8:]
    lab.ask("B", 16)
    lab.ask("C", 16)
    lab.ask("A", 8, 1)
    gone = lab.ask("D", 20).removed_blocks("GPU")
    return tail[-1] not in gone


def b15(profile: str) -> bool:
    """A request without outputs that runs beside a decode stores a token it never reported."""
    lab = Lab(profile)
    lab.start(lab.tokens("R", 2), 20)
    for _ in range(4):
        lab.engine.tick()
    for delay in range(4):
        lab.start(lab.tokens(f"P{delay}", 2, 15), 0)
        for _ in range(delay + 2):
            lab.engine.tick()
    lab.rest()
    return any(
        len(node) + sum(len(n) for n in node.path() if n is not node) > 2
        for node in lab.engine.cache.tree.nodes()
        if node.run.tokens[0][:3] in {lab.tokens(f"P{d}", 1)[:3] for d in range(4)}
    )


def b16(profile: str) -> bool:
    """An aborted request without outputs returns one token."""
    lab = Lab(profile)
    rid = lab.start(lab.tokens("A", 4), 0)
    lab.engine.tick()
    lab.engine.abort(rid)
    reply = lab.rest().reply
    return reply is not None and len(reply.output_ids) == 1


def b17(profile: str) -> bool:
    """A namespaced request has pages fetched from storage and does not get them."""
    lab = Lab(profile, storage=True)
    lab.ask("A", 6, 1)
    lab.ask("A", 6, 1, namespace="a")
    lab.flush()
    asked = lab.ask("A", 6, 1, namespace="a")
    return bool(asked.stored("CPU_PINNED")) and asked.split[2] == 0


def b18(profile: str) -> bool:
    """A prefetch from storage evicts host pages by its length, not by the shortfall."""
    lab = Lab(profile, storage=True)
    lab.ask("P", 20, 1)
    lab.flush()
    lab.fill(15, 8)
    short = 20 - lab.free("host")
    return spared(lab.ask("P", 20, 1).removed("CPU_PINNED"), short)


def e1(profile: str) -> bool:
    """A load-back evicts its full length, not the shortfall."""
    lab = Lab(profile)
    lab.ask("A", 16, 1)
    lab.fill(7, 8)
    short = 16 - lab.free("device")
    return spared(lab.ask("A", 16, 1).removed_first("GPU"), short)


def e2(profile: str) -> bool:
    """A prompt that fits the free pages exactly still evicts."""
    lab = Lab(profile)
    lab.fill(7, 8)
    return lab.free("device") == 8 and bool(lab.ask("X", 8).removed("GPU"))


def e3(profile: str) -> bool:
    """A decode step inside its page evicts when no page is free."""
    lab = Lab(profile)
    lab.fill(5, 11)
    return lab.free("device") == 9 and bool(lab.ask("X", 8, outputs=3).removed("GPU"))


def e4(profile: str) -> bool:
    """A backup evicts host pages by the node's length, not by the shortfall."""
    lab = Lab(profile)
    lab.fill(15, 8)
    short = 10 - lab.free("host")
    return spared(lab.ask("X", 10).removed("CPU_PINNED"), short)


def e5(profile: str) -> bool:
    """write_back stores a child on host before its parent, both victims of one eviction."""
    lab = Lab(profile, "write_back")
    parents = lab.ask("A", 8).stored("GPU")
    lab.ask("A", 16)
    lab.fill(5, 8)
    stored = lab.ask("X", 17).stored("CPU_PINNED")
    return bool(set(parents) & set(stored)) and stored[0] not in parents


def n1(profile: str) -> bool:
    """write_back copies a node a second time within one request."""
    lab = Lab(profile, "write_back", host=33)
    for stream, pages in (("A", 32), ("B", 32), ("C", 12), ("A", 32)):
        lab.ask(stream, pages, 1)
    last = lab.ask("B", 32, 1)
    return bool(set(last.removed_blocks("CPU_PINNED")) & set(last.stored("CPU_PINNED")))


def n3(profile: str) -> bool:
    """write_through with a small host loses older copies and stores nothing new."""
    lab = Lab(profile, host=33)
    lab.ask("D", 12, 1)
    lab.ask("B", 20, 1)
    last = lab.ask("A", 32, 1)
    return bool(last.removed("CPU_PINNED")) and not last.stored("CPU_PINNED")


def n4(profile: str) -> bool:
    """A node larger than the host pool empties the host tier."""
    lab = Lab(profile, "write_back", host=33)
    lab.ask("C", 32, 1)
    lab.ask("A", 40, 1)
    return bool(lab.ask("B", 40, 1).removed("CPU_PINNED"))


def n5(profile: str) -> bool:
    """One removal event holds blocks of two namespaces (the Python core of 0.5.23)."""
    lab = Lab(profile, coalesce="python" if rules_for(profile).unified else "")
    first = set(lab.ask("A", 8, 1, namespace="a").stored("GPU"))
    second = set(lab.ask("B", 8, 1, namespace="b").stored("GPU"))
    events = lab.ask("X", 60).events
    removals = [set(event.hashes) for event in events if isinstance(event, BlockRemoved)]
    return any(hashes & first and hashes & second for hashes in removals)


PROGRAMS: dict[str, Program] = {
    program.__name__.upper().replace("B6B", "B6b").replace("B6C", "B6c"): program
    for program in (
        b5, b6, b6b, b6c, b7, b8, b9, b13, b15, b16, b17, b18,
        e1, e2, e3, e4, e5,
        n1, n3, n4, n5,
    )
}  # fmt: skip

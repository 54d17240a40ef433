"""Operations of a case, drawn from what the case has sent so far."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from tierfuzz.program import (
    Attach,
    Burst,
    ClearStorage,
    Detach,
    Fill,
    FleetConfig,
    Flush,
    Generate,
    WritePolicy,
)
from tierfuzz.strategies import prompts

NAMESPACES = ("tenant-a", "tenant-b")
LONGEST_SHARE = 6  # prompts take at most a sixth of the device pool


def longest(fleet: FleetConfig) -> int:
    """Longest fresh prompt in tokens."""
    return max(2 * fleet.page_size, fleet.device_tokens // LONGEST_SHARE)


def workers(fleet: FleetConfig) -> st.SearchStrategy[int]:
    """A worker of the fleet."""
    return st.integers(0, fleet.workers - 1)


def primes(fleet: FleetConfig, name: str) -> st.SearchStrategy[Generate]:
    """First use of a prefix, sometimes of a shared stream."""
    page, most = fleet.page_size, longest(fleet)
    pieces = prompts.fresh(f"p-{name}", page, most) | prompts.shared(page, most)
    return st.builds(Generate, st.just(name), workers(fleet), pieces, prompts.outputs(page), st.just("prime"))


def namespaced(fleet: FleetConfig, name: str) -> st.SearchStrategy[Generate]:
    """A shared prompt under a namespace."""
    page = fleet.page_size
    return st.builds(
        Generate,
        st.just(name),
        workers(fleet),
        prompts.shared(page, longest(fleet)),
        prompts.outputs(page),
        st.just("namespaced"),
        st.sampled_from(NAMESPACES),
    )


def fillers(fleet: FleetConfig, name: str) -> st.SearchStrategy[Fill]:
    """Traffic that turns the device pool of one worker over, or most of it."""
    return st.builds(
        Fill,
        st.just(name),
        workers(fleet),
        st.just(f"f-{name}"),
        st.sampled_from((1.0, 1.0, 1.2, 0.6)),
        st.sampled_from((0.125, 0.1, 0.14)),
        st.sampled_from((0, 0, 2)),
    )


def repeats(sent: Sequence[Generate], name: str) -> st.SearchStrategy[Generate]:
    """An earlier request once more."""
    return st.sampled_from(sent).map(lambda g: again(g, name, "repeat"))


def again(generate: Generate, name: str, role: str) -> Generate:
    """The same prompt, namespace and outputs under another id and role."""
    return Generate(
        name,
        generate.worker,
        generate.prompt,
        generate.outputs,
        role,  # type: ignore[arg-type]
        generate.namespace,
    )


def forks(fleet: FleetConfig, sent: Sequence[Generate], name: str) -> st.SearchStrategy[Generate]:
    """A prompt that shares a part of an earlier one: splits a node."""
    page = fleet.page_size

    def of(origin: Generate) -> st.SearchStrategy[Generate]:
        return st.builds(
            Generate,
            st.just(name),
            st.just(origin.worker),
            prompts.forks(origin.prompt, f"x-{name}", page),
            prompts.outputs(page),
            st.just("fork"),
            st.just(origin.namespace),
        )

    return st.sampled_from(sent).flatmap(of)


def bursts(fleet: FleetConfig, sent: Sequence[Generate], name: str) -> st.SearchStrategy[Burst]:
    """Two to four requests together on one worker, some of them aborted."""
    page = fleet.page_size
    pieces = prompts.shared(page, longest(fleet))
    if sent:
        pieces |= st.sampled_from(sent).map(lambda g: g.prompt)
    member = st.tuples(pieces, prompts.outputs(page), st.sampled_from((None, None, None, 0.0, 0.001)))

    def build(worker: int, members: list[tuple[tuple[prompts.Piece, ...], int, float | None]]) -> Burst:
        requests = tuple(
            Generate(
                f"{name}.{i}",
                worker,
                prompt,
                wanted if abort is None else max(wanted, 2 * page),  # long enough to be caught running
                "prime",
                abort_after_s=abort,
            )
            for i, (prompt, wanted, abort) in enumerate(members)
        )
        return Burst(name, requests)

    return st.builds(build, workers(fleet), st.lists(member, min_size=2, max_size=4))


def storage_controls(
    fleet: FleetConfig, name: str, worker: int
) -> st.SearchStrategy[ClearStorage | Attach | Detach | Flush]:
    """Changes of the storage tier, and flushes, after which storage is asked; other policies only where that
    leaves no gaps on host (B3)."""
    policies: list[WritePolicy] = [fleet.policy]
    if fleet.policy != "write_back":
        policies += ["write_through", "write_through_selective"]
    made: list[ClearStorage | Attach | Detach | Flush] = [Flush(name, worker), Flush(name, worker)]
    made += [Flush(name, worker), ClearStorage(name, worker), Detach(name, worker)]
    made += [Attach(name, worker, policy) for policy in policies]
    return st.sampled_from(made)

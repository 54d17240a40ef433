"""Whether a run on a worker would prove anything: one check a line, each with its cure."""

from __future__ import annotations

from collections.abc import Iterator

from tierfuzz.engines.base import host_pool_tokens
from tierfuzz.errors import EnvironmentFailure, Vacuous
from tierfuzz.preflight.seen import Check, Seen, stored_on_device
from tierfuzz.program import WRITE_POLICIES

FEWEST_PAGES = 8  # of the device pool: an answer is over a page long, a prompt takes two or three
LEAST_PAGE = 10  # tokens: shorter host parts may be recomputed instead (reference 5.6)


def checks(seen: Seen) -> list[Check]:
    """Every check that can be made; those after one that fails at the start are left out."""
    if seen.error:
        cure = "start the worker, or correct the address; set TIERFUZZ_API_KEY where it wants a key"
        return [Check("reachable", False, seen.error, cure)]
    found = [Check("reachable", True, f"{seen.url}, version {seen.info.get('version', 'unknown')}")]
    for group in (_health, _cache, _capacities, _accounting, _events, _rest):
        found += group(seen)
    return found


def refuse_vacuous(seen: Seen) -> None:
    """Vacuous where a run on this worker would prove nothing; EnvironmentFailure where it does not answer."""
    failed = [check for check in checks(seen) if check.needed and not check.ok]
    if seen.error:
        raise EnvironmentFailure(f"{seen.url} cannot be tested: {seen.error}")
    if failed:
        text = "; ".join(f"{check.name}: {check.says} ({check.cure})" for check in failed)
        raise Vacuous(f"a run on {seen.url} would prove nothing: {text}")


def _health(seen: Seen) -> Iterator[Check]:
    yield Check(
        "healthy",
        seen.healthy,
        "/health answers 200" if seen.healthy else "/health does not answer 200",
        "wait until it has started (kernels compile for minutes), or look at its log",
    )


def _cache(seen: Seen) -> Iterator[Check]:
    on = bool(seen.info.get("enable_hierarchical_cache"))
    says = "on" if on else "off: there is no host tier"
    yield Check("hierarchical cache", on, says, "start it with --enable-hierarchical-cache")
    policy = seen.info.get("hicache_write_policy")
    yield Check(
        "write policy",
        policy in WRITE_POLICIES,
        str(policy),
        f"use one of {', '.join(WRITE_POLICIES)} (--hicache-write-policy)",
    )


def _capacities(seen: Seen) -> Iterator[Check]:
    try:
        page, device = int(seen.info["page_size"]), int(seen.info["max_total_num_tokens"])
        host = host_pool_tokens(seen.info, device, page)
    except (KeyError, TypeError, ValueError, EnvironmentFailure) as error:
        yield Check("capacities", False, f"/server_info lacks {error}", "is it an SGLang worker?")
        return
    text = f"page {page}, device {device}, host {host if host is not None else 'sized in bytes'} tokens"
    yield Check(
        "capacities",
        device >= FEWEST_PAGES * page,
        text,
        f"give the device pool {FEWEST_PAGES} pages or more (--max-total-tokens)",
    )
    yield Check(
        "host pool",
        host is None or host >= device,
        "not below the device pool" if host is None or host >= device else "smaller than the device pool",
        "raise --hicache-ratio to 1 or more: else no host copy can be foreseen",
        needed=False,
    )
    yield Check(
        "page size",
        page >= LEAST_PAGE,
        f"{page} tokens",
        f"use {LEAST_PAGE} tokens or more (--page-size): shorter host parts may be declined",
        needed=False,
    )


def _accounting(seen: Seen) -> Iterator[Check]:
    failed = next((a for a in seen.answers if a.status != "ok"), None)
    if failed is not None or len(seen.answers) < 2:
        says = failed.error if failed is not None else "not asked"
        yield Check("accounting", False, says, "look at the worker's log: /generate must answer")
        return
    first, second = seen.answers
    hit = second.split is not None and (second.cached_tokens or 0) > 0
    split = second.split
    text = f"cached {second.cached_tokens}" + (f", device {split.device}, host {split.host}" if split else "")
    yield Check(
        "accounting",
        hit and not first.cached_tokens,
        f"a repeated prompt reports {text}",
        "is prefix caching on, and has the reply cached_tokens_details?",
    )


def _events(seen: Seen) -> Iterator[Check]:
    config = "start it with --kv-events-config and publisher zmq, or give --events"
    yield Check("events", bool(seen.endpoints.events), seen.endpoints.events or "none configured", config)
    if not seen.endpoints.events:
        return
    block = (seen.info.get("kv_events") or {}).get("block_size", seen.info.get("page_size"))
    yield Check(
        "block size",
        block == seen.info.get("page_size"),
        f"events {block}, pages {seen.info.get('page_size')}",
        "report it: events of other blocks than pages cannot be followed",
    )
    ranks = (seen.info.get("kv_events") or {}).get("dp_size", 1)
    yield Check(
        "ranks",
        ranks == 1,
        f"{ranks} publishers of events",
        "test a worker with one rank (--dp-size 1): a reply does not say which rank has served it",
    )
    yield Check(
        "live events",
        seen.live > 0,
        f"{seen.live} messages came",
        "open the port; a worker whose endpoint has no wildcard connects instead of listening",
    )
    yield _stored(seen)
    faults = sorted({fault.slug for batch in seen.batches for fault in batch.faults})
    yield Check(
        "event form", not faults, ", ".join(faults) or "as known", "is it a version that tierfuzz reads?"
    )
    replay = f"replay from {seen.endpoints.replay or 'nowhere'}"
    yield Check(
        "replay",
        seen.replayed is not None,
        f"{replay} answers" if seen.replayed is not None else f"{replay} does not answer",
        "add a replay_endpoint to --kv-events-config, or give --replay: gaps could not be told from silence",
    )


def _stored(seen: Seen) -> Check:
    """The prompt that was sent is announced, under the hashes that this tierfuzz computes, on device."""
    stored = stored_on_device(seen.batches)
    missing = [h for h in seen.blocks if h not in stored]
    return Check(
        "blocks",
        bool(seen.blocks) and not missing,
        f"{len(seen.blocks) - len(missing)} of {len(seen.blocks)} blocks of a prompt came to the device",
        "is it another hash rule (a namespace seed, another version), or a worker that others use?",
    )


def _rest(seen: Seen) -> Iterator[Check]:
    idle = {True: "answers: idle", False: "answers: busy", None: "cannot be asked"}[seen.idle]
    yield Check(
        "idle probe",
        seen.idle is not None,
        idle,
        "start it with --admin-api-key, and set TIERFUZZ_API_KEY to that key",
    )
    yield Check(
        "rest",
        seen.at_rest,
        "can be proved" if seen.at_rest else seen.unrest,
        "nobody else may use the worker while it is tested",
    )

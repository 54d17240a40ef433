"""One small check an oracle: what is wrong with what was seen, or "" when nothing is.

`at` is the request that was accused, `facts` are the figures of the accusation. Where those came from events,
which may have been wrong, what events say now counts as well: the worker gets the better of both. Only the
checks that a script needs are written into it; events are judged where they are booked.
"""

from __future__ import annotations

from typing import Any

from tierfuzz.report.handover.script.run import Run, Undecided
from tierfuzz.report.handover.script.worker import Reply

Facts = dict[str, Any]


def announced(run: Run, seen: Reply, least: int) -> int:
    """Under selective the policy says only of announced copies that they must be there."""
    if run.setup["policy"] != "write_through_selective" or seen["claimed"] is None:
        return least
    return min(least, int(seen["claimed"][0]) * int(run.setup["page"]))


def host_miss(run: Run, at: str, facts: Facts) -> str:
    seen = run.reply(at)
    least = announced(run, seen, facts["host_only"])
    ok = seen["device"] == 0 and seen["host"] >= least
    told = f"device {seen['device']}, host {seen['host']} tokens; expected device 0, host at least {least}"
    return "" if ok else told


def prefix_miss(run: Run, at: str, facts: Facts) -> str:
    cached, least = run.reply(at)["cached"], announced(run, run.reply(at), facts["held"])
    return "" if cached >= least else f"cached {cached} tokens; {least} must still be held"


def phantom_hit(run: Run, at: str, facts: Facts) -> str:
    cached, most = run.reply(at)["cached"], facts["most"]
    return "" if cached <= most else f"cached {cached} tokens; at most {most} can have been computed"


def clear_scope(run: Run, at: str, facts: Facts) -> str:
    return phantom_hit(run, at, facts) if "most" in facts else run.odd("clear-scope")


def split_sum(run: Run, at: str, facts: Facts) -> str:
    seen, page = run.reply(at), facts["page"]
    parts = [seen[tier] for tier in ("device", "host", "storage")]
    ok = sum(parts) == seen["cached"] and not any(
        part % page or part < 0 for part in (*parts, seen["cached"])
    )
    return "" if ok else f"cached {seen['cached']} tokens, split {parts}; expected whole pages that add up"


def content(run: Run, at: str, facts: Facts) -> str:
    ours, first = run.reply(at)["outputs"], run.reply(facts["first"])["outputs"]
    common = min(len(ours), len(first))
    told = f"outputs {ours[:8]}; {facts['first']} was answered {first[:8]}"
    return "" if ours[:common] == first[:common] else told


def ledger_accounting(run: Run, at: str, facts: Facts) -> str:
    """Events were unsure by as many pages as the interval of the accusation is wide."""
    seen, page = run.reply(at), run.setup["page"]
    if seen["claimed"] is None:
        raise Undecided("no events were read")
    held, on_device, _ = seen["claimed"]
    total, device = (seen["cached"] - seen["storage"]) // page, seen["device"] // page
    close = abs(total - held) <= facts["total_high"] - facts["total_low"]
    close = close and abs(device - on_device) <= facts["device_high"] - facts["device_low"]
    told = f"accounting: {total} pages, {device} of them from device; events: {held} and {on_device}"
    return "" if close else told


def overlap_miss(run: Run, at: str, facts: Facts) -> str:
    seen, left = run.reply(at), run.group(at)["left"]
    pages, stayed = seen["cached"] // run.setup["page"], facts["stayed"]
    if seen["claimed"] is not None:
        before = seen["usable"][: seen["claimed"][0]]
        stayed = min(stayed, next((i for i, block in enumerate(before) if block in left), len(before)))
    return "" if pages >= stayed else f"{pages} pages cached; {stayed} were in the tree and never left it"


def overlap_excess(run: Run, at: str, facts: Facts) -> str:
    seen, page = run.reply(at), run.setup["page"]
    pages, device = seen["cached"] // page, seen["device"] // page
    held, on_device, _ = seen["claimed"] or (0, 0, 0)
    most, most_device = max(facts["most"], held), max(facts["most_device"], on_device)
    told = f"{pages} pages cached, {device} from device; at most {most} and {most_device}"
    return "" if pages <= most and device <= most_device else told


def host_unseen(run: Run, at: str, facts: Facts) -> str:
    """A page that was on host only and was served came from host for one of those that it was served to,
    unless one of them has computed it anew."""
    del facts
    replies, page = run.group(at)["replies"], run.setup["page"]
    if not replies or replies[0]["claimed"] is None:
        raise Undecided("no events were read")
    anew = {b for seen in replies for b in seen["blocks"][seen["cached"] // page :]}
    served: dict[int, bool] = {}
    for seen in replies:
        for index, block in enumerate(seen["usable"][: seen["cached"] // page]):
            if block in seen["host_only"] - anew and index >= seen["claimed"][1]:
                served[block] = served.get(block, False) or seen["device"] // page <= index
    missing = sum(not from_host for from_host in served.values())
    return f"{missing} pages that were on host only were served, none of them as host" if missing else ""


def load_accounting(run: Run, at: str, facts: Facts) -> str:
    """Where revivals are announced, a page that was computed anew is no load, although it was on host."""
    group, page = run.group(at), run.setup["page"]
    reported = sum(seen["host"] for seen in group["replies"]) // page
    silent, loads = run.setup["silent_revival"], group["loads"]
    anew = {b for seen in group["replies"] if not silent for b in seen["blocks"][seen["cached"] // page :]}
    high, slack = loads.total(), facts["loads_high"] - facts["loads_low"]
    low = sum(times for block, times in loads.items() if block not in anew) - slack
    told = f"{reported} host pages reported; events show {low} to {high} pages loaded"
    return "" if low <= reported <= high + slack else told


def insert_bound(run: Run, at: str, facts: Facts) -> str:
    blocks, told = run.reply(at)["blocks"], run.group(at)["told"]
    silent = [b for b in blocks[: facts["sure"]] if b not in told and not run.books[facts["worker"]].held(b)]
    return f"{len(silent)} pages of a finished request were never announced" if silent else ""


def storage_miss(run: Run, at: str, facts: Facts) -> str:
    seen = run.reply(at)
    pages = seen["storage"] // run.setup["page"]
    least = min(facts["own"], seen["claimed"][2]) if seen["claimed"] is not None else facts["own"]
    return "" if pages >= least else f"{pages} pages from storage; {least} were written there"


def storage_phantom(run: Run, at: str, facts: Facts) -> str:
    """Pages that had to leave to make room may have come back from storage."""
    seen, left = run.reply(at), run.group(at)["left"]
    pages, most = seen["storage"] // run.setup["page"], max(facts["own"], facts["any_owner"])
    if seen["claimed"] is not None:
        held, _, stored = seen["claimed"]
        most = max(most, stored) + sum(block in left for block in seen["usable"][:held])
    return "" if pages <= most else f"{pages} pages from storage; at most {most} were ever written to it"


def namespace_leak(run: Run, at: str, facts: Facts) -> str:
    tokens, page = run.reply(at)["storage"], run.setup["page"]
    foreign = facts["own"] < tokens // page <= facts["any_owner"] and tokens >= facts["threshold"]
    told = f"{tokens // page} pages from storage; {facts['own']} were written for this namespace"
    return told if foreign else ""


def storage_below_threshold(run: Run, at: str, facts: Facts) -> str:
    tokens, least = run.reply(at)["storage"], facts["threshold"]
    return f"{tokens} tokens from storage; a prefetch is worth {least}" if 0 < tokens < least else ""


def leak_at_rest(run: Run, at: str, facts: Facts) -> str:
    del at
    found = run.levels[facts["worker"]]
    if facts["gauge"] not in found:
        raise Undecided(f"the worker does not tell {facts['gauge']}")
    value = found[facts["gauge"]]
    return f"{facts['gauge']}: {value:g} at rest; expected 0" if value else ""


def pool_levels(run: Run, at: str, facts: Facts) -> str:
    del at
    if not run.levels[facts["worker"]]:
        raise Undecided("the worker tells no levels")
    return "; ".join(run.beyond)


def no_backup(run: Run, at: str, facts: Facts) -> str:
    del at, facts
    if not run.setup["backup_hits"]:
        raise Undecided("this fleet may leave pages without a host copy")
    if not any(run.events):
        raise Undecided("no events were read")
    return run.odd("no-backup")


def accounting(run: Run, at: str, facts: Facts) -> str:
    """For oracles that need the whole model: only what the forecast says of each reply."""
    del at, facts
    return "; ".join(run.against_forecast())

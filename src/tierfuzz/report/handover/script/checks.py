"""One small check an oracle: what is wrong with what was seen, or "" when nothing is.

`at` is the request that was accused, `facts` are the figures of the accusation. Only those that a script
needs are written into it; events are judged where they are booked.
"""

from __future__ import annotations

from typing import Any

from tierfuzz.report.handover.script.run import Run, Undecided

Facts = dict[str, Any]


def host_miss(run: Run, at: str, facts: Facts) -> str:
    seen, least = run.reply(at), facts["host_only"]
    ok = seen["device"] == 0 and seen["host"] >= least
    told = f"device {seen['device']}, host {seen['host']} tokens; expected device 0, host at least {least}"
    return "" if ok else told


def prefix_miss(run: Run, at: str, facts: Facts) -> str:
    cached = run.reply(at)["cached"]
    return "" if cached >= facts["held"] else f"cached {cached} tokens; {facts['held']} must still be held"


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
    held, on_device = seen["claimed"]
    total, device = (seen["cached"] - seen["storage"]) // page, seen["device"] // page
    close = abs(total - held) <= facts["total_high"] - facts["total_low"]
    close = close and abs(device - on_device) <= facts["device_high"] - facts["device_low"]
    told = f"accounting: {total} pages, {device} of them from device; events: {held} and {on_device}"
    return "" if close else told


def overlap_miss(run: Run, at: str, facts: Facts) -> str:
    pages = run.reply(at)["cached"] // run.setup["page"]
    return "" if pages >= facts["stayed"] else f"{pages} pages cached; {facts['stayed']} never left the tree"


def overlap_excess(run: Run, at: str, facts: Facts) -> str:
    seen, page = run.reply(at), run.setup["page"]
    pages, device = seen["cached"] // page, seen["device"] // page
    ok = pages <= facts["most"] and device <= facts["most_device"]
    told = f"{pages} pages cached, {device} from device; at most {facts['most']} and {facts['most_device']}"
    return "" if ok else told


def load_accounting(run: Run, at: str, facts: Facts) -> str:
    """Where revivals are announced, a page that was computed anew is no load, although it was on host."""
    group, page = run.group(at), run.setup["page"]
    reported = sum(seen["host"] for seen in group["replies"]) // page
    silent = run.setup["silent_revival"]
    anew = {b for seen in group["replies"] if not silent for b in seen["blocks"][seen["cached"] // page :]}
    loads = sum(times for block, times in group["loads"].items() if block not in anew)
    slack = facts["loads_high"] - facts["loads_low"]
    ok = abs(reported - loads) <= slack
    return "" if ok else f"{reported} host pages reported; events show {loads} pages loaded"


def insert_bound(run: Run, at: str, facts: Facts) -> str:
    blocks, told = run.reply(at)["blocks"], run.group(at)["told"]
    silent = [b for b in blocks[: facts["sure"]] if b not in told and not run.books[facts["worker"]].held(b)]
    return f"{len(silent)} pages of a finished request were never announced" if silent else ""


def storage_miss(run: Run, at: str, facts: Facts) -> str:
    pages = run.reply(at)["storage"] // run.setup["page"]
    return "" if pages >= facts["own"] else f"{pages} pages from storage; {facts['own']} were written there"


def storage_phantom(run: Run, at: str, facts: Facts) -> str:
    pages, most = run.reply(at)["storage"] // run.setup["page"], max(facts["own"], facts["any_owner"])
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

"""verdict.txt: what is wrong, as forecast against ledger against accounting, with the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tierfuzz.eventview import Interval
from tierfuzz.evidence import Evidence
from tierfuzz.observation import Observation, TierSplit
from tierfuzz.oracles.registry import ORACLES
from tierfuzz.program import Program
from tierfuzz.report.handover.story import Chapter, chapters
from tierfuzz.runevents import RequestSent
from tierfuzz.verdict import Verdict
from tierfuzz.violations import describe

MOST_AN_ORACLE = 3


def verdict_text(program: Program, verdicts: Sequence[Verdict], evidence: Evidence) -> str:
    """Every oracle that was violated, with the three views of the request that showed it."""
    fleet = program.fleet
    head = f"Violated under {fleet.policy} by engine {fleet.engine}"
    head += f" with {', '.join(fleet.plants)} planted" if fleet.plants else ""
    parts = [head + "; figures are tokens unless they say pages.\n"]
    told = _Told(chapters(evidence), fleet.page_size)
    counts: Counter[str] = Counter()
    for verdict in verdicts:
        if not verdict.is_violation:
            continue
        counts[verdict.oracle] += 1
        if counts[verdict.oracle] <= MOST_AN_ORACLE:
            parts.append(told.verdict(verdict))
    more = counts - Counter(dict.fromkeys(counts, MOST_AN_ORACLE))
    parts += [f"{oracle}: {count} more of them\n" for oracle, count in more.items()]
    return "\n".join(parts)


class _Told:
    """Says what an oracle means, and shows the views of a request, once."""

    def __init__(self, found: list[Chapter], page: int) -> None:
        self._found = found
        self._page = page
        self._said: set[str] = set()

    def verdict(self, verdict: Verdict) -> str:
        """The verdict with its figures, and the three views where there is a request."""
        lines = [describe(verdict)]
        if verdict.oracle in ORACLES and self._first(verdict.oracle):
            lines.append(f"  rule: {ORACLES[verdict.oracle].explanation}")
        if verdict.facts:
            facts = ", ".join(f"{name} {value}" for name, value in verdict.facts.items())
            lines.append(f"  figures: {facts}")
        request = _request(verdict.operation, self._found)
        if request is not None and self._first(f"request {verdict.operation}"):
            lines += ["", *_views(request, _seen(verdict.operation, self._found), self._page)]
        return "\n".join(lines) + "\n"

    def _first(self, what: str) -> bool:
        first = what not in self._said
        self._said.add(what)
        return first


def _request(name: str, found: list[Chapter]) -> RequestSent | None:
    return next((sent for chapter in found for sent in chapter.sent if sent.request.id == name), None)


def _seen(name: str, found: list[Chapter]) -> Observation | None:
    return next((o for chapter in found for o in chapter.observations if o.operation == name), None)


def _views(sent: RequestSent, seen: Observation | None, page: int) -> list[str]:
    """A table of the three views: cached in all, from device, from host."""
    rows = [
        (sent.request.id, "cached", "device", "host"),
        _forecast(sent, page),
        _ledger(sent, page),
        _accounting(seen),
    ]
    return [f"  {row[0]:28}{row[1]:>14}{row[2]:>14}{row[3]:>14}" for row in rows]


def _forecast(sent: RequestSent, page: int) -> tuple[str, str, str, str]:
    """From the operations alone."""
    forecast = sent.forecast
    cached = _range(forecast.held * page, forecast.most * page)
    if forecast.host_only:
        return "forecast (operations)", cached, "0", f"{forecast.host_only * page} or more"
    return "forecast (operations)", cached, "?", "?"


def _ledger(sent: RequestSent, page: int) -> tuple[str, str, str, str]:
    """From the events before the request; it says nothing unless the worker was at rest and alone."""
    if sent.view is None:
        return "ledger (not at rest)", "?", "?", "?"
    total, device = sent.view.total, sent.view.device
    host = Interval(max(0, total.low - device.high), max(0, total.high - device.low))
    cells = [_range(interval.low * page, interval.high * page) for interval in (total, device, host)]
    return "ledger (events)", cells[0], cells[1], cells[2]


def _accounting(seen: Observation | None) -> tuple[str, str, str, str]:
    """From the reply."""
    if seen is None or seen.prompt_tokens is None:
        return "accounting (no reply)", "?", "?", "?"
    split = seen.split or TierSplit()
    return "accounting (reply)", str(seen.cached_tokens), str(split.device), str(split.host)


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}..{high}"

"""Oracles over one reply: bounds, split, forecast, event view, content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tierfuzz.eventview import PrefixView
from tierfuzz.forecast.contract import Forecast
from tierfuzz.forecast.history import common_prefix
from tierfuzz.observation import Observation, TierSplit
from tierfuzz.oracles.docket import Docket
from tierfuzz.oracles.likelihoods import Likelihoods, tolerance_of
from tierfuzz.oracles.storage import StorageForecast, StorageWatch

LOAD_BACK_LEAST = 10  # tokens: shorter host parts may be recomputed instead (reference 5.6)


@dataclass(frozen=True)
class Expectation:
    """What was known when a request was sent. `view` is None unless the worker was at rest and alone;
    `ever`: leading pages computed since the worker started, flushes or not; `most_stored`: pages that it can
    store at most; `from_mates`: leading pages that requests beside it may compute (None: there are none)."""

    operation: str
    namespace: str
    hashes: tuple[int, ...]
    tokens: tuple[int, ...]
    began: int
    forecast: Forecast
    view: PrefixView | None
    ever: int
    storage: StorageForecast | None = None
    most_stored: int = 0
    from_mates: int | None = None

    @property
    def alone(self) -> bool:
        """No other request runs beside it."""
        return self.from_mates is None


def beside(own: Expectation, others: Sequence[Expectation]) -> Expectation:
    """The same request among others that run beside it: each may be computed before any other (6.6, O1)."""
    mates = [mate for mate in others if mate.namespace == own.namespace]
    reach = min(own.forecast.limit, max((_reach(own, mate) for mate in mates), default=0))
    forecast = replace(own.forecast, most=max(own.forecast.most, reach), held=0, host_only=0, reasons=())
    return replace(own, forecast=forecast, view=None, from_mates=reach)


def _reach(own: Expectation, mate: Expectation) -> int:
    """Leading pages of `own` that a mate may compute: its outputs, not known yet, may match too."""
    whole = own.tokens[: len(mate.tokens)] == mate.tokens
    return mate.most_stored if whole else common_prefix(own.hashes, mate.hashes)


def check_reply(docket: Docket, page: int, expected: Expectation, seen: Observation) -> None:
    """Everything that can be said of a reply at once."""
    cached = seen.cached_tokens or 0
    split = seen.split or TierSplit()
    _check_split(docket, page, expected, cached, split, seen.split is None)
    _check_bound(docket, page, expected, cached)
    _check_forecast(docket, page, expected, cached, split)
    if expected.view is not None and expected.storage is None:
        check_view(docket, page, expected, expected.view, seen)


def _check_split(
    docket: Docket, page: int, expected: Expectation, cached: int, split: TierSplit, absent: bool
) -> None:
    parts = (split.device, split.host, split.storage)
    whole = all(part % page == 0 and part >= 0 for part in (*parts, cached))
    ok = split.total == cached and whole
    text = "null" if absent else f"device {parts[0]} + host {parts[1]} + storage {parts[2]}"
    docket.check(
        ok,
        "split-sum",
        expected.operation,
        f"cached {cached} tokens, details {text}; expected parts of whole {page}-token pages that add up",
        facts={"cached": cached, "device": parts[0], "host": parts[1], "storage": parts[2], "page": page},
    )


def _check_bound(docket: Docket, page: int, expected: Expectation, cached: int) -> None:
    most = expected.forecast.most * page
    stale = most < cached <= expected.ever * page
    docket.check(
        cached <= most,
        "clear-scope" if stale else "phantom-hit",
        expected.operation,
        f"cached {cached} tokens; at most {most} were computed in this namespace"
        + (" since the last flush" if stale else " and may be matched"),
        facts={
            "cached": cached,
            "most": most,
            "limit": expected.forecast.limit * page,
            "elsewhere": cached <= expected.forecast.elsewhere * page,
        },
    )


def _check_forecast(docket: Docket, page: int, expected: Expectation, cached: int, split: TierSplit) -> None:
    forecast = expected.forecast
    if forecast.held:
        docket.check(
            cached >= forecast.held * page,
            "prefix-miss",
            expected.operation,
            f"cached {cached} tokens; {forecast.held * page} must still be held",
            forecast.reasons,
            {"cached": cached, "held": forecast.held * page},
        )
    if forecast.host_only:
        least = forecast.host_only * page
        docket.check(
            split.host >= least and split.device == 0,
            "host-miss",
            expected.operation,
            f"device {split.device}, host {split.host} tokens; expected nothing from device and at least "
            f"{least} from host",
            forecast.reasons,
            {"device": split.device, "host": split.host, "host_only": least},
        )


def check_view(
    docket: Docket, page: int, expected: Expectation, view: PrefixView, seen: Observation, refetched: int = 0
) -> None:
    """O5: events and accounting agree. `refetched`: pages that were held and may have come from storage."""
    cached, split = seen.cached_tokens or 0, seen.split or TierSplit()
    least, most = view.total.low - view.device.high, view.total.high - view.device.low
    if most > 0 and max(1, least) * page < LOAD_BACK_LEAST:
        docket.unknown("ledger-accounting", expected.operation, "a host part this short may be declined")
        return
    total, device = (cached - split.storage) // page, split.device // page
    docket.check(
        view.total.low - refetched <= total <= view.total.high and view.device.holds(device),
        "ledger-accounting",
        expected.operation,
        f"accounting: {total} pages from device and host, {device} of them from device; "
        f"events: {view.total.low} to {view.total.high} and {view.device.low} to {view.device.high}",
        facts={
            "cached_pages": total,
            "device_pages": device,
            "total_low": view.total.low,
            "total_high": view.total.high,
            "device_low": view.device.low,
            "device_high": view.device.high,
        },
    )


def settle_storage(
    docket: Docket, page: int, storage: StorageWatch, expected: Expectation, seen: Observation
) -> None:
    """What a request was served beside a storage tier, at rest: every event is in hand."""
    if expected.storage is None or expected.view is None:
        return
    refetched = storage.refetched(expected.hashes[: expected.forecast.limit], expected.storage)
    check_view(docket, page, expected, expected.view, seen, refetched)
    storage.check(expected.operation, expected.storage, seen.split or TierSplit(), refetched)


class Contents:
    """Greedy outputs by prompt: the same prompt has to be answered in the same way. Where log probabilities
    were asked for they are compared instead, within the noise of honest answers."""

    def __init__(self, docket: Docket, layers: int = 0) -> None:
        self._docket = docket
        self._probable = Likelihoods(docket, tolerance_of(layers))
        self._answers: dict[tuple[int, ...], tuple[tuple[int, ...], str]] = {}

    def clear(self) -> None:
        """Forget the answers (a new case)."""
        self._answers.clear()
        self._probable.clear()

    def check(self, expected: Expectation, seen: Observation) -> None:
        """Compare with the first answer to this prompt, as far as both go."""
        if not seen.output_ids:
            return
        if seen.first_logprobs:
            self._probable.check(expected.tokens, expected.operation, seen)
            return
        first, operation = self._answers.get(expected.tokens, ((), ""))
        if not first:
            self._answers[expected.tokens] = (seen.output_ids, expected.operation)
            return
        common = min(len(first), len(seen.output_ids))
        split = seen.split or TierSplit()
        self._docket.check(
            first[:common] == seen.output_ids[:common],
            "content",
            expected.operation,
            f"outputs {list(seen.output_ids[:common])[:8]} with {split.device} tokens from device and "
            f"{split.host} from host; {operation} was answered {list(first[:common])[:8]}",
            facts={"device": split.device, "host": split.host, "first": operation},
        )

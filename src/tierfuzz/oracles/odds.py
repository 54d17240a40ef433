"""Odds that chance alone made two rates differ as much: Fisher's exact test, one-sided."""

from __future__ import annotations

from math import exp, lgamma


def fisher(hits: int, tries: int, control_hits: int, control_tries: int) -> float:
    """Probability of at least `hits` of `tries`, were both groups alike and as many in all had hit."""
    total, all_hits = tries + control_tries, hits + control_hits
    if not tries or not control_tries or not all_hits:
        return 1.0
    whole = _choose(total, all_hits)
    most = min(tries, all_hits)
    parts = (
        _choose(tries, k) + _choose(control_tries, all_hits - k) - whole
        for k in range(max(hits, all_hits - control_tries), most + 1)
    )
    return min(1.0, sum(exp(part) for part in parts))


def _choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)

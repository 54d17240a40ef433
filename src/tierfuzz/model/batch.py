"""Batches that were launched and whose results are processed one step later."""

from __future__ import annotations

from dataclasses import dataclass

from tierfuzz.model.request import Active


@dataclass
class PrefillBatch:
    """Requests of one prefill, with the tokens of each that were launched."""

    actives: list[Active]
    chunked: Active | None  # the one whose prompt is not complete yet


@dataclass
class DecodeBatch:
    """Requests of one decode step."""

    actives: list[Active]


LaunchedBatch = PrefillBatch | DecodeBatch

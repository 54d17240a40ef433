"""Entries of a known-defect file: an oracle, a precise predicate on facts and fleet, engine versions.

    {"kind": "known-defects", "format": 1, "versions": ["0.5.17"],
     "entries": [{"id": "B7", "title": "...", "oracle": "unmatched-removal",
                  "facts": {"tier": "device", "revival_candidate": true}, "fleet": {}, "link": "..."}]}

Every named fact has to be there and to fit: a value fits itself only, {"min": a, "max": b} a number between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tierfuzz.errors import FormatError
from tierfuzz.oracles.registry import ORACLES
from tierfuzz.program import FleetConfig
from tierfuzz.verdict import Verdict

KNOWN_FORMAT = 1


class Between(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number from `min` to `max`, both included; None: no bound."""

    min: float | None = None
    max: float | None = None


Scalar = str | int | float | bool | None
Wanted = Scalar | Between


class KnownDefect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way in which a known defect shows. `versions` of the engine; () inside a file that has some."""

    id: str
    title: str
    oracle: str
    link: str
    facts: dict[str, Wanted] = {}
    fleet: dict[str, Wanted] = {}
    versions: tuple[str, ...] = ()

    def applies(self, config: FleetConfig, version: str) -> bool:
        """Whether it can show in this fleet; `version` "": a healthy engine, which has none."""
        return version in self.versions and _fit(self.fleet, msgspec.structs.asdict(config))

    def explains(self, verdict: Verdict) -> bool:
        """Whether a violation is this one, where it applies."""
        return verdict.oracle == self.oracle and _fit(self.facts, verdict.facts)


class KnownFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of entries; `versions` holds for those that name none of their own."""

    kind: str
    format: int
    versions: tuple[str, ...]
    entries: tuple[KnownDefect, ...]


def _fit(wanted: Mapping[str, Wanted], seen: Mapping[str, Any]) -> bool:
    return all(name in seen and _fits(value, seen[name]) for name, value in wanted.items())


def _fits(wanted: Wanted, seen: object) -> bool:
    if not isinstance(wanted, Between):
        return type(wanted) is type(seen) and wanted == seen
    if isinstance(seen, bool) or not isinstance(seen, int | float):
        return False
    low = wanted.min is None or seen >= wanted.min
    return low and (wanted.max is None or seen <= wanted.max)


def parse_known(data: bytes, origin: str) -> tuple[KnownDefect, ...]:
    """Entries of a file; FormatError says what is wrong with it."""
    try:
        head = msgspec.json.decode(data, type=dict)
        version = (head.get("kind"), head.get("format"))
        if version != ("known-defects", KNOWN_FORMAT):
            raise FormatError(
                f"{origin}: kind and format are {version}; expected ('known-defects', {KNOWN_FORMAT})"
            )
        file = msgspec.json.decode(data, type=KnownFile)
    except msgspec.DecodeError as error:
        raise FormatError(f"{origin}: no file of known defects ({error}); see docs/known.md") from error
    return tuple(_complete(entry, file, origin) for entry in file.entries)


def _complete(entry: KnownDefect, file: KnownFile, origin: str) -> KnownDefect:
    if entry.oracle not in ORACLES:
        raise FormatError(
            f"{origin}: entry {entry.id} names the oracle {entry.oracle!r}; see `tierfuzz oracles`"
        )
    if unknown := set(entry.fleet) - set(FleetConfig.__struct_fields__):
        raise FormatError(f"{origin}: entry {entry.id} asks for {sorted(unknown)}, which no fleet has")
    return msgspec.structs.replace(entry, versions=entry.versions or file.versions)

"""Rules of an engine version, and of a fleet's configuration."""

from __future__ import annotations

from tierfuzz.model.rules import PROFILES, Rules, rules_for
from tierfuzz.program import FleetConfig

DEFAULT_VERSION = "0.5.17"
FIRST_UNIFIED = (0, 5, 23)  # the newer of the two versions that are known in depth


def rules_of_version(version: str) -> Rules:
    """The rules of a known version, or those of the known one that it is nearest to."""
    known = PROFILES.get(f"sglang-{version}")
    if known is not None:
        return known
    return PROFILES["sglang-0.5.23" if _number(version) >= FIRST_UNIFIED else "sglang-0.5.17"]


def rules_of_fleet(config: FleetConfig) -> Rules:
    """The rules that its workers follow: of the profile they simulate, or of their version."""
    if config.engine == "sim":
        return rules_for(config.profile)
    return rules_of_version(config.engine_version or DEFAULT_VERSION)


def version_of_fleet(config: FleetConfig) -> str:
    """The engine version that the workers are, or whose profile they simulate; "" for a healthy one."""
    if config.engine == "sim":
        return config.profile.removeprefix("sglang-") if config.profile != "default" else ""
    return config.engine_version or DEFAULT_VERSION


def _number(version: str) -> tuple[int, ...]:
    """The leading numbers: 0.5.23.post1 is (0, 5, 23)."""
    numbers: list[int] = []
    for part in version.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)

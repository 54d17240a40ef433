"""Content campaigns on a simulated worker: honest ones are silent, and none without sight is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierfuzz.campaign_content import ContentConfig, ContentResult, run_content
from tierfuzz.contents.traffic import Load
from tierfuzz.errors import ExitCode, Vacuous
from tierfuzz.oracles.contents import Figures
from tierfuzz.program import FleetConfig


def run(folder: Path, talk_s: float = 0.5, load_s: float = 0.5, **fleet: object) -> ContentResult:
    """A short campaign on one worker."""
    config = FleetConfig(workers=1, device_tokens=768, host_ratio=4.0, **fleet)  # type: ignore[arg-type]
    return run_content(ContentConfig(config, talk_s, load_s, Load(), seed=3, log_dir=folder), lambda _: None)


@pytest.mark.parametrize("page_size", [1, 16])
def test_an_honest_worker_is_not_accused(page_size: int, tmp_path: Path) -> None:
    result = run(tmp_path, page_size=page_size)
    assert result.exit_code is ExitCode.HELD, result.findings
    served = {(one.kind, one.served) for one in result.seen}
    assert served >= {("at", "host"), ("at", "device"), ("cut", "host"), ("prefilled", "host")}
    assert served >= {("traffic", "host"), ("traffic", "device"), ("traffic", "fresh"), ("quiet", "device")}
    assert max(one.difference for one in result.seen) == 0.0


def test_storage_is_asked_too(tmp_path: Path) -> None:
    result = run(tmp_path, load_s=0.0, storage_threshold=16)
    assert result.exit_code is ExitCode.HELD, result.findings
    assert {("at", "storage"), ("before", "storage")} <= {(one.kind, one.served) for one in result.seen}


def test_an_engine_whose_contents_cannot_be_seen_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Figures, "enough", property(lambda figures: figures.early < 0))
    with pytest.raises(Vacuous, match="one changed token moves log probabilities by"):
        run(tmp_path)

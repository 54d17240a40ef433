"""Workers that run already: their configuration is taken from them, and they are left as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tierfuzz.control_operations import permitted
from tierfuzz.engines.attached import attached_config, attached_to
from tierfuzz.engines.registry import driver_for, driver_of
from tierfuzz.errors import UsageError
from tierfuzz.program import Attach, Attached, ClearStorage, FleetConfig, Flush, Hold, Idle, Restart
from tierfuzz.worker.attached import AttachedProcess

URL = "http://127.0.0.1:30000"
AT = Attached(URL, "tcp://127.0.0.1:1", "tcp://127.0.0.1:2", "kv")


def recorded_info(recordings: Path, **changes: Any) -> dict[str, Any]:
    """/server_info of a real 0.5.17: page 16, D 1024, ratio 2."""
    return {**json.loads((recordings / "server-info-0.5.17.json").read_text()), **changes}


def config_of(*infos: dict[str, Any], destructive: bool = False) -> FleetConfig:
    """The fleet of workers that say this."""
    return attached_config(list(infos), [AT] * len(infos), driver_for("sglang"), destructive)


def test_the_configuration_is_the_workers_own(recordings: Path) -> None:
    config = config_of(recorded_info(recordings))
    assert (config.page_size, config.device_tokens, config.host_tokens) == (16, 1024, 2064)
    assert (config.policy, config.engine_version, config.workers) == ("write_through", "0.5.17", 1)
    assert config.chunked_prefill == 8192
    assert not config.storage_threshold


def test_endpoints_are_found_or_given(recordings: Path) -> None:
    info = recorded_info(recordings)
    assert attached_to(info, URL).events == "tcp://127.0.0.1:5630"
    assert attached_to(info, URL, "tcp://h:1").events == "tcp://h:1"


@pytest.mark.parametrize(("extra", "threshold"), [(None, 256), ({"prefetch_threshold": 32}, 32)])
def test_a_storage_tier_is_seen(extra: Any, threshold: int, recordings: Path) -> None:
    info = recorded_info(
        recordings, hicache_storage_backend="file", hicache_storage_backend_extra_config=extra
    )
    assert config_of(info).storage_threshold == threshold


def test_workers_of_two_kinds_are_refused(recordings: Path) -> None:
    with pytest.raises(UsageError, match="one kind at a time"):
        config_of(recorded_info(recordings), recorded_info(recordings, page_size=32))


def test_a_host_pool_in_bytes_is_refused(recordings: Path) -> None:
    with pytest.raises(UsageError, match="sized in bytes"):
        config_of(recorded_info(recordings, hicache_size=4))


def test_nothing_is_launched_and_the_key_is_in_no_file(
    recordings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIERFUZZ_API_KEY", "secret")
    config = config_of(recorded_info(recordings))
    launch = driver_of(config).launch(config, 0, [])
    assert (launch.command, launch.base_url, launch.api_key) == ([], URL, "secret")
    assert "secret" not in repr(config)


OPERATIONS = [
    Flush("o", 0),
    Restart("o", 0),
    Hold("o", 0),
    ClearStorage("o", 0),
    Attach("o", 0, "write_back"),
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda op: type(op).__name__)
def test_what_would_change_a_worker_becomes_a_wait(operation: Any) -> None:
    assert permitted(operation, FleetConfig(attached=(AT,))) == Idle("o", 0)
    assert permitted(operation, FleetConfig()) == operation


def test_with_permission_it_is_flushed_and_never_ended() -> None:
    fleet = FleetConfig(attached=(AT,), destructive=True)
    assert permitted(Restart("o", 0), fleet) == Flush("o", 0)
    assert permitted(ClearStorage("o", 0), fleet) == ClearStorage("o", 0)


def test_a_process_that_is_not_ours_goes_on() -> None:
    process = AttachedProcess(URL)
    process.start()
    process.check_alive()
    process.remove_log()
    process.resume()
    assert process.alive()
    assert (process.stop(5.0), process.kill(), process.status, process.pid) == (None, None, None, 0)
    assert URL in process.name
    assert "owner" in process.told()
    with pytest.raises(UsageError, match="never paused"):
        process.pause()

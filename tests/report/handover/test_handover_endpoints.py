"""Where repro.py looks for events: what /server_info of several workers says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tierfuzz.report.handover.script.events import endpoints


def config(endpoint: str, replay: str | None) -> str:
    """The text of --kv-events-config."""
    return json.dumps({"publisher": "zmq", "endpoint": endpoint, "replay_endpoint": replay})


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({}, ("", "", False)),
        ({"kv_events_config": None}, ("", "", False)),
        (
            {"kv_events_config": config("tcp://*:5557", "tcp://*:5558")},
            ("tcp://gpu7:5557", "tcp://gpu7:5558", False),
        ),
        ({"kv_events_config": config("tcp://*:5557", None)}, ("tcp://gpu7:5557", "", False)),
        ({"kv_events_config": '{"publisher":"zmq"}'}, ("tcp://gpu7:5557", "", False)),
        (
            {"kv_events_config": config("tcp://127.0.0.1:6000", "tcp://127.0.0.1:6001")},
            ("tcp://127.0.0.1:6000", "tcp://127.0.0.1:6001", True),
        ),
        (
            {
                "kv_events_config": config("tcp://*:0", "tcp://*:0"),
                "kv_events": {"endpoint_port_base": 7000, "replay_endpoint_port_base": 7001},
            },
            ("tcp://gpu7:7000", "tcp://gpu7:7001", False),
        ),
        (
            {
                "kv_events_config": config("tcp://*:0", "tcp://*:0"),
                "kv_events": {"endpoint_port_base": 7000},
                "sim": {"replay_endpoint": "tcp://127.0.0.1:7002"},
            },
            ("tcp://gpu7:7000", "tcp://gpu7:7002", False),
        ),
        ({"kv_events_config": config("ipc:///tmp/x", None)}, ("ipc:///tmp/x", "", False)),
    ],
)
def test_endpoints_are_found(info: dict[str, Any], expected: tuple[str, str, bool]) -> None:
    assert endpoints(info, "http://gpu7:30000") == expected

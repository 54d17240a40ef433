"""Programs on disk: round trip, and clear refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierfuzz.errors import FormatError
from tierfuzz.program import (
    Burst,
    Fill,
    FleetConfig,
    Flush,
    Generate,
    Hold,
    Idle,
    Operation,
    Program,
    Release,
    Restart,
    dump_program,
    load_program,
)
from tierfuzz.prompts import Piece

PROMPT = (Piece("A", 0, 20), Piece("@a", 0, 2))
OPERATIONS: tuple[Operation, ...] = (
    Generate("a", 0, (Piece("A", 0, 20),), 2, "prime", "tenant", 3, 0.5),
    Fill("f", 1, "F", 1.5, 0.25, 2, "a"),
    Burst("b", (Generate("b0", 0, PROMPT, 1), Generate("b1", 0, PROMPT, abort_after_s=0.0))),
    Idle("i", 0),
    Flush("fl", 0),
    Hold("h", 0),
    Release("r", 0),
    Restart("x", 1),
)


def test_a_program_survives_the_round_trip(tmp_path: Path) -> None:
    program = Program(FleetConfig(policy="write_back", plants=("no-backup",)), OPERATIONS)
    path = tmp_path / "program.json"
    path.write_bytes(dump_program(program))
    assert load_program(path) == program


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not a program"),
        ('{"format": 99}', "program format 99; expected format 1"),
        ('{"format": 1, "fleet": {}, "operations": [{"type": "dance", "id": "x"}]}', "not a program"),
        ("[1, 2]", "not a program"),
    ],
)
def test_what_is_no_program_is_refused_with_its_reason(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=said):
        load_program(path)


def test_the_host_pool_has_one_extra_page() -> None:
    assert FleetConfig(page_size=16, device_tokens=1024, host_ratio=2.0).host_tokens == 2064
    assert FleetConfig(page_size=1, device_tokens=512, host_ratio=2.0).host_tokens == 1025
    assert FleetConfig(page_size=16, device_tokens=1024, host_ratio=0.5).host_tokens == 528

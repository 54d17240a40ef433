"""Random weights: a file that the format's rules describe, of the scale that contents need."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tierfuzz.engines.sglang.model_folder import ModelShape
from tierfuzz.engines.sglang.weights import bfloat16, model_of, shape_of
from tierfuzz.program import FleetConfig

RANDOM = FleetConfig(engine="sglang", weights="random", layers=2)


def floats(data: bytes) -> Any:
    """The values of bfloat16 data."""
    return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)


def read(path: Path) -> dict[str, Any]:
    """Every tensor of a file, by the format's own rules."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    head, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    assert max(tensor["data_offsets"][1] for tensor in head.values()) == len(body)
    return {
        name: floats(body[slice(*tensor["data_offsets"])]).reshape(tensor["shape"])
        for name, tensor in head.items()
    }


def test_the_weights_of_a_model_are_complete_and_of_the_right_scale(tmp_path: Path) -> None:
    folder = model_of(RANDOM, tmp_path)
    found = read(folder / "model.safetensors")
    assert len(found) == 3 + 2 * 11
    assert found["model.layers.1.self_attn.k_proj.weight"].shape == (128, 512)
    assert found["model.layers.0.self_attn.q_norm.weight"].tolist() == [1.5] * 64
    assert abs(found["model.embed_tokens.weight"].std() - 1) < 0.02
    assert abs(found["model.layers.1.mlp.down_proj.weight"].std() * 1024**0.5 - 1) < 0.02
    assert abs(found["lm_head.weight"].std() * 512**0.5 - 3) < 0.05


def test_a_file_is_written_once_and_is_the_same_everywhere(tmp_path: Path) -> None:
    path = model_of(RANDOM, tmp_path) / "model.safetensors"
    before = path.stat().st_mtime_ns
    model_of(RANDOM, tmp_path)
    assert path.stat().st_mtime_ns == before
    assert (model_of(RANDOM, tmp_path / "other") / path.name).read_bytes() == path.read_bytes()


def test_without_random_weights_the_model_is_that_of_the_recordings(tmp_path: Path) -> None:
    assert shape_of(FleetConfig()) == ModelShape()
    assert shape_of(FleetConfig(layers=36)).layers == 36
    assert not (model_of(FleetConfig(), tmp_path) / "model.safetensors").exists()


def test_values_are_rounded_to_the_nearest() -> None:
    values = np.array([1.0, -1.5, 1.0 + 2**-9, 1.0 + 3 * 2**-9, 3.14159], np.float32)
    assert floats(bfloat16(values)).tolist() == [1.0, -1.5, 1.0, 1.0 + 2**-7, 3.140625]

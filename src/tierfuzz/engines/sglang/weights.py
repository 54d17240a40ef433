"""Random weights of normal scale, so that contents can be compared.

Those that the engine makes up make every answer equal to the last bit, whatever the prefix (reference 7.1).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tierfuzz.engines.sglang.model_folder import ModelShape, model_folder
from tierfuzz.program import FleetConfig

FILE = "model.safetensors"
SEED = 20_260
RANDOM_LAYERS = 4
NORM_OF_HEADS, SCALE_OF_OUTPUT = 1.5, 3.0
Tensor = tuple[str, tuple[int, ...], float | None]  # name, shape, constant (None: random)


def shape_of(config: FleetConfig) -> ModelShape:
    """The model of a fleet: the recordings' one, or for contents a wider and deeper one."""
    if config.weights == "random":
        return ModelShape(layers=config.layers or RANDOM_LAYERS, hidden=512, heads=8)
    return ModelShape(layers=config.layers or ModelShape.layers)


def model_of(config: FleetConfig, root: Path | None = None) -> Path:
    """The model folder of a fleet, written when it is not there yet."""
    shape = shape_of(config)
    folder = model_folder(shape, root)
    if config.weights == "random" and not (folder / FILE).exists():
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as partial:
            partial.writelines(safetensors(shape))
        Path(partial.name).replace(folder / FILE)
    return folder


def tensors(shape: ModelShape) -> Iterator[Tensor]:
    """Every weight of a dense Qwen3."""
    hidden, inner = shape.hidden, 2 * shape.hidden
    query, key = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    yield "model.embed_tokens.weight", (shape.vocabulary, hidden), None
    for number in range(shape.layers):
        layer = f"model.layers.{number}"
        yield f"{layer}.input_layernorm.weight", (hidden,), 1.0
        yield f"{layer}.post_attention_layernorm.weight", (hidden,), 1.0
        yield f"{layer}.self_attn.q_proj.weight", (query, hidden), None
        yield f"{layer}.self_attn.k_proj.weight", (key, hidden), None
        yield f"{layer}.self_attn.v_proj.weight", (key, hidden), None
        yield f"{layer}.self_attn.o_proj.weight", (hidden, query), None
        yield f"{layer}.self_attn.q_norm.weight", (shape.head_dim,), NORM_OF_HEADS
        yield f"{layer}.self_attn.k_norm.weight", (shape.head_dim,), NORM_OF_HEADS
        yield f"{layer}.mlp.gate_proj.weight", (inner, hidden), None
        yield f"{layer}.mlp.up_proj.weight", (inner, hidden), None
        yield f"{layer}.mlp.down_proj.weight", (hidden, inner), None
    yield "model.norm.weight", (hidden,), 1.0
    yield "lm_head.weight", (shape.vocabulary, hidden), None


def safetensors(shape: ModelShape) -> Iterator[bytes]:
    """The file, piece by piece: length of the head, head, values in bfloat16."""
    head: dict[str, Any] = {}
    at = 0
    for name, size, _ in tensors(shape):
        length = 2 * int(np.prod(size))
        head[name] = {"dtype": "BF16", "shape": size, "data_offsets": (at, at + length)}
        at += length
    encoded = msgspec.json.encode(head)
    yield len(encoded).to_bytes(8, "little")
    yield encoded
    generator = np.random.default_rng(SEED)
    for name, size, constant in tensors(shape):
        if constant is not None:
            yield bfloat16(np.full(size, constant, np.float32))
        else:
            yield bfloat16(generator.standard_normal(size, np.float32) * np.float32(_scale(name, size)))


def _scale(name: str, size: tuple[int, ...]) -> float:
    """Embedding N(0, 1), projections N(0, 1 / inputs), the last one three times that."""
    if name.startswith("model.embed"):
        return 1.0
    return float((SCALE_OF_OUTPUT if name.startswith("lm_head") else 1.0) / np.sqrt(size[1]))


def bfloat16(values: np.ndarray[Any, np.dtype[np.float32]]) -> bytes:
    """The upper half of each float32, rounded to the nearest even."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16).tobytes()

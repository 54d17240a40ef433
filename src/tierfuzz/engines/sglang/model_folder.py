"""A model folder that needs no download: a tiny Qwen3 configuration and a byte-level tokenizer.

Cache behaviour does not depend on the weights, so an engine makes them up (`--load-format dummy`).
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from tierfuzz.cachedir import cache_folder

BYTES = 256


@dataclass(frozen=True)
class ModelShape:
    """Sizes of the transformer. The defaults are those of the recordings' model."""

    layers: int = 2
    hidden: int = 256
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    vocabulary: int = 1024
    positions: int = 65_536


def model_folder(shape: ModelShape, root: Path | None = None) -> Path:
    """The folder for a shape, written when it is not there yet; `root`: tierfuzz's cache folder."""
    name = hashlib.sha256(msgspec.json.encode(asdict(shape))).hexdigest()[:12]
    folder = (root or cache_folder()) / "models" / f"qwen3-{shape.layers}x{shape.hidden}-{name}"
    files = {
        "tokenizer.json": tokenizer(shape.vocabulary),
        "tokenizer_config.json": TOKENIZER_CONFIG,
        "config.json": config(shape),  # last: with it the folder is complete
    }
    if not (folder / "config.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            _write(folder / file, content)
    return folder


def _write(path: Path, content: dict[str, Any]) -> None:
    """At once or not at all, also when two runs make the same folder."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as partial:
        partial.write(msgspec.json.encode(content))
    Path(partial.name).replace(path)


def config(shape: ModelShape) -> dict[str, Any]:
    """`config.json` of a dense Qwen3."""
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "torch_dtype": "bfloat16",
        "num_hidden_layers": shape.layers,
        "hidden_size": shape.hidden,
        "intermediate_size": 2 * shape.hidden,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "vocab_size": shape.vocabulary,
        "max_position_embeddings": shape.positions,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 10_000.0,
        "attention_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }


TOKENIZER_CONFIG: dict[str, Any] = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "eos_token": "<t0>",
    "model_max_length": 65_536,
}


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


def tokenizer(vocabulary: int) -> dict[str, Any]:
    """`tokenizer.json`: ids 1..256 are the bytes, the others have names of their own; no merges."""
    words = ["<t0>", *_byte_letters(), *(f"<t{number}>" for number in range(BYTES + 1, vocabulary))]
    return {
        "version": "1.0",
        "added_tokens": [_special(0, "<t0>")],
        "pre_tokenizer": BYTE_LEVEL,
        "decoder": BYTE_LEVEL,
        "model": {"type": "BPE", "vocab": {word: at for at, word in enumerate(words)}, "merges": []},
    }


def _special(number: int, word: str) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": number, "content": word, **flags}


def _byte_letters() -> list[str]:
    """The letter that stands for each byte in byte-level vocabularies: itself where it can be printed, else
    the next one from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)) for byte in range(BYTES)]

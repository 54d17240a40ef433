"""The least that routers of others take for the folder of a model: prompts are token ids, which need none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

VOCABULARY = 512


def write_tokenizer(folder: Path) -> None:
    """Three files: words by number, and a name of an architecture."""
    words = {"<unk>": 0, **{f"w{number}": number for number in range(1, VOCABULARY)}}
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "<unk>"},
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "added_tokens": [],
        "normalizer": None,
        "post_processor": None,
        "decoder": None,
    }
    files = {"tokenizer.json": tokenizer, "tokenizer_config.json": {}, "config.json": {"model_type": "llama"}}
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))

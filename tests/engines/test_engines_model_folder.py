"""The model folder: complete, the same for the same shape, and a vocabulary that has every byte."""

from __future__ import annotations

import json
from pathlib import Path

from tierfuzz.engines.sglang.model_folder import ModelShape, model_folder, tokenizer


def test_a_folder_has_configuration_and_tokenizer(tmp_path: Path) -> None:
    folder = model_folder(ModelShape(layers=3, vocabulary=2048), tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    config = json.loads((folder / "config.json").read_text())
    assert (config["num_hidden_layers"], config["vocab_size"]) == (3, 2048)


def test_a_folder_is_made_once(tmp_path: Path) -> None:
    folder = model_folder(ModelShape(), tmp_path)
    before = (folder / "config.json").stat().st_mtime_ns
    assert model_folder(ModelShape(), tmp_path) == folder
    assert (folder / "config.json").stat().st_mtime_ns == before


def test_another_shape_has_another_folder(tmp_path: Path) -> None:
    assert model_folder(ModelShape(), tmp_path) != model_folder(ModelShape(layers=36), tmp_path)


def test_the_vocabulary_is_full_and_has_a_letter_for_every_byte() -> None:
    vocabulary = tokenizer(1024)["model"]["vocab"]
    assert sorted(vocabulary.values()) == list(range(1024))
    letters = {word for word in vocabulary if len(word) == 1}
    assert len(letters) == 256
    assert {
        "A",
        "Ġ",
        "Ċ",
    } <= letters  # itself; the space and the line end as byte-level vocabularies have them

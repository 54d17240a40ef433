"""The storage folder: shared by workers, survives them, never half written."""

from __future__ import annotations

from pathlib import Path

import pytest
from sim_process import PAGE, running, tokens

from tierfuzz.sim.storage import STORAGE_FOLDER_VARIABLE, FileStorage

STORAGE = (
    "--hicache-storage-backend=file",
    '--hicache-storage-backend-extra-config={"prefetch_threshold":32}',
)


def test_pages_are_found_by_everyone_with_the_same_folder_and_model(tmp_path: Path) -> None:
    one, two, other = (FileStorage(tmp_path, model) for model in ("tiny", "tiny", "large"))
    one["", -5] = -(1 << 63)
    one["tenant", -5] = 7
    assert two["", -5] == -(1 << 63)
    assert two["tenant", -5] == 7
    assert ("", -6) not in two
    assert ("", -5) not in other
    assert (len(two), len(other)) == (2, 0)
    two.clear()
    assert ("", -5) not in one
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_page_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileStorage(tmp_path, "tiny")["", 1]


def test_what_a_worker_stored_serves_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STORAGE_FOLDER_VARIABLE, str(tmp_path / "pages"))
    prefix = tokens("a", 4 * PAGE + 1)
    with running(*STORAGE) as first:
        cold = first.generate(prefix, 3)["output_ids"]
        first.rest()
    assert len(list((tmp_path / "pages").iterdir())) == 4
    with running(*STORAGE) as second:
        reply = second.generate(prefix, 3)
        details = {"device": 0, "host": 0, "storage": 64, "storage_backend": "HiCacheFile"}
        assert reply["meta_info"]["cached_tokens_details"] == details
        assert reply["output_ids"] == cold

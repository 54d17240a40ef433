"""The storage tier on disk: one file a page, shared by every worker with the same folder (reference 5.8)."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

STORAGE_FOLDER_VARIABLE = "SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR"
_BITS = (1 << 64) - 1
Key = tuple[str, int]  # namespace, page hash


class FileStorage(dict[Key, int]):
    """Page contents by key, in files only: pages of other workers and of earlier runs count too.

    A dict by type, as the step model asks for one; nothing is kept in memory, so it cannot be iterated.
    """

    def __init__(self, folder: Path, model: str) -> None:
        super().__init__()
        self._folder = folder
        self._model = hashlib.sha256(model.encode()).hexdigest()[:8]
        folder.mkdir(parents=True, exist_ok=True)

    def _file(self, key: Key) -> Path:
        namespace, page_hash = key
        space = hashlib.sha256(namespace.encode()).hexdigest()[:16] if namespace else "default"
        return self._folder / f"{page_hash & _BITS:016x}_{space}_{self._model}_0_1.bin"

    def __contains__(self, key: object) -> bool:
        """A file is what counts: another worker may have written or cleared it."""
        return isinstance(key, tuple) and self._file(key).exists()

    def __getitem__(self, key: Key) -> int:
        """The content of a stored page."""
        return int.from_bytes(self._file(key).read_bytes(), "big", signed=True)

    def __setitem__(self, key: Key, content: int) -> None:
        """Store a page; readers never see half of one."""
        target = self._file(key)
        part = target.with_suffix(f".{os.getpid()}.part")
        part.write_bytes(content.to_bytes(8, "big", signed=True))
        part.replace(target)

    def __len__(self) -> int:
        """Stored pages, of whichever worker."""
        return len(list(self._folder.glob(f"*_{self._model}_0_1.bin")))

    def clear(self) -> None:
        """Remove every page of this model."""
        for file in self._folder.glob(f"*_{self._model}_0_1.bin"):
            file.unlink(missing_ok=True)

"""What the judgement has to know of a worker and its version; everything else it sees from outside."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Traits:
    """`seeded_namespaces`: block hashes differ between namespaces (default simulated worker).

    `removal_first`: under write_back the device removal is published before the host store.
    `silent_revival`: recomputed pages over a host-only node come to the device without an event (B7).
    `advertised`: tokens a block, as this worker tells routers; None where it does not.
    """

    seeded_namespaces: bool = False
    removal_first: bool = True
    silent_revival: bool = True
    advertised: int | None = None

    def seed(self, namespace: str) -> bytes:
        """What the hash chain of a namespace starts from."""
        return namespace_seed(namespace) if self.seeded_namespaces else b""


def namespace_seed(namespace: str) -> bytes:
    """Seed of the simulated worker's chain where namespaces have hashes of their own; empty for none."""
    return hashlib.sha256(b"tierfuzz-namespace\0" + namespace.encode()).digest() if namespace else b""

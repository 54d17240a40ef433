"""Plugin of the real engine (entry points `sglang.srt.plugins`): lets it run its host tier on a CPU.

Installed as a file of its own into the engine's environment, where tierfuzz is not: it may import nothing of
tierfuzz. What it replaces are leaves: three copies between pools, one rotary embedding, pinned memory. The
scheduler, the tree, the cache controller and the event publisher stay as they are. Arrays are torch tensors
there; the arithmetic is written so that numpy arrays do as well, for tests.
"""

from __future__ import annotations

import os
import sys
import threading
import types
from collections.abc import Sequence
from typing import Any

DELAY_VARIABLE = "TIERFUZZ_ACK_DELAY_MS"
Array = Any


# copies between the pools (io backend `direct`) ----------------------------------------------------
def transfer_kv_direct(
    src_layers: Sequence[Array],
    dst_layers: Sequence[Array],
    src_indices: Array,
    dst_indices: Array,
    page_size: int,
) -> None:
    """Rows of both sides are tokens, a buffer a layer on both."""
    del page_size
    for source, target in zip(src_layers, dst_layers, strict=True):
        target[dst_indices] = source[src_indices]


def transfer_kv_per_layer_direct_pf_lf(
    src_ptrs: Sequence[Array],
    dst_ptrs: Sequence[Array],
    src_indices: Array,
    dst_indices: Array,
    layer_id: int,
    page_size: int,
) -> None:
    """Host to device, one layer: the host has [page, layer, token in page, ...], the device a row a token."""
    pages = _pages(src_indices, page_size)
    for host, device in zip(src_ptrs, dst_ptrs, strict=True):
        rows = host[pages, layer_id]
        device[dst_indices] = rows.reshape(-1, *rows.shape[2:])


def transfer_kv_all_layer_direct_lf_pf(
    src_ptrs: Sequence[Array],
    dst_ptrs: Sequence[Array],
    src_indices: Array,
    dst_indices: Array,
    page_size: int,
) -> None:
    """Device to host, all layers; `src_ptrs` holds every layer's keys, then every layer's values."""
    pages, layers = _pages(dst_indices, page_size), len(src_ptrs) // len(dst_ptrs)
    for number, device in enumerate(src_ptrs):
        rows = device[src_indices]
        host = dst_ptrs[number // layers]
        host[pages, number % layers] = rows.reshape(-1, page_size, *rows.shape[1:])


def _pages(tokens: Array, page_size: int) -> Array:
    """Page numbers of token slots that come in whole pages."""
    return tokens[::page_size] // page_size


# rotary embedding ----------------------------------------------------------------------------------
def rotary_embedding(
    positions: Array, query: Array, key: Array, head_size: int, cos_sin_cache: Array, is_neox: bool
) -> None:
    """Turn query and key in place; a row of the cache is the cosines, then the sines, of one position."""
    table = cos_sin_cache[positions.reshape(-1)][:, None, :]
    half = table.shape[-1] // 2
    cos, sin = table[..., :half], table[..., half:]
    for rows in (query, key):
        heads = rows.reshape(table.shape[0], -1, head_size)
        first, second = _halves(half, is_neox)
        a, b = heads[..., first], heads[..., second]
        turned = a * cos - b * sin, b * cos + a * sin
        heads[..., first], heads[..., second] = turned
        rows[...] = heads.reshape(rows.shape)  # a view of the same memory, mostly


def _halves(half: int, is_neox: bool) -> tuple[slice, slice]:
    """Which entries of a head are turned against each other."""
    if is_neox:
        return slice(0, half), slice(half, 2 * half)
    return slice(0, 2 * half, 2), slice(1, 2 * half, 2)


# late acknowledgements -----------------------------------------------------------------------------
class LateEvent:
    """Stands for the end of a copy, and comes `delay_s` seconds after it was made."""

    def __init__(self, delay_s: float) -> None:
        self._done = threading.Event()
        timer = threading.Timer(delay_s, self._done.set)
        timer.daemon = True
        timer.start()

    def query(self) -> bool:
        """Whether the copy counts as done."""
        return self._done.is_set()

    def synchronize(self) -> None:
        """Wait until it does."""
        self._done.wait()

    def elapsed_time(self, other: object) -> float:
        """Milliseconds; nobody relies on it."""
        del other
        return 0.0


def late(acks: Any, delay_s: float) -> Any:
    """The engine's acknowledgement type, with ends that come late."""

    def make(start_event: object, finish_event: object, *args: object, **kwargs: object) -> Any:
        del finish_event
        return acks(start_event, LateEvent(delay_s), *args, **kwargs)

    return make


class Unpinned:
    """A pool's attribute that stays False: without a GPU there is no pinned memory."""

    def __get__(self, pool: object, owner: object = None) -> bool:
        return False

    def __set__(self, pool: object, value: object) -> None:
        pass


# what the engine calls -----------------------------------------------------------------------------
COPIES = (transfer_kv_direct, transfer_kv_per_layer_direct_pf_lf, transfer_kv_all_layer_direct_lf_pf)


def activate() -> None:
    """Put the stand-ins in place; nothing is changed where there is a GPU."""
    import torch

    if torch.cuda.is_available():
        return
    _offer_rotary_embedding()
    from sglang.srt.mem_cache.pool_host import common, mha

    common._cuda_host_register = common._cuda_host_unregister = _nothing
    mha.MHATokenToKVPoolHost.pin_memory = Unpinned()
    for copy in COPIES:
        setattr(mha, copy.__name__, copy)
    delay_ms = float(os.environ.get(DELAY_VARIABLE) or 0)
    if delay_ms > 0:
        from sglang.srt.managers import cache_controller

        cache_controller.HiCacheAck = late(cache_controller.HiCacheAck, delay_ms / 1000)


def _offer_rotary_embedding() -> None:
    """Where neither the engine's kernels nor its CPU platform are, it asks vLLM for this one."""
    package, operations = types.ModuleType("vllm"), types.ModuleType("vllm._custom_ops")
    package.__path__ = []
    operations.__dict__["rotary_embedding"] = rotary_embedding
    sys.modules.setdefault("vllm", package)
    sys.modules.setdefault("vllm._custom_ops", operations)


def _nothing(*args: object, **kwargs: object) -> None:
    """Takes the place of registering memory with a GPU driver."""
    del args, kwargs

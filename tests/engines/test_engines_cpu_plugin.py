"""The plugin of the CPU engine: its copies and its rotary embedding, on numpy arrays."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tierfuzz.engines.sglang_cpu import plugin, torchvision_stand_in

PAGE, LAYERS = 4, 3


def device_pool(seed: int) -> list[Any]:
    """A buffer a layer, [token, head, dim]."""
    return [np.random.default_rng([seed, layer]).normal(size=(40, 2, 8)) for layer in range(LAYERS)]


def slots(*pages: int) -> Any:
    """Token slots of whole pages."""
    return np.concatenate([np.arange(page * PAGE, (page + 1) * PAGE) for page in pages])


def test_pages_come_back_as_they_were() -> None:
    keys, values = device_pool(1), device_pool(2)
    host = [np.zeros((10, LAYERS, PAGE, 2, 8)) for _ in range(2)]
    plugin.transfer_kv_all_layer_direct_lf_pf(
        src_ptrs=keys + values,
        dst_ptrs=host,
        src_indices=slots(3, 1),
        dst_indices=slots(0, 5),
        page_size=PAGE,
    )
    assert np.array_equal(host[1][5, 2], values[2][slots(1)])
    back = [np.zeros_like(keys[0]) for _ in range(2)]
    plugin.transfer_kv_per_layer_direct_pf_lf(
        src_ptrs=host,
        dst_ptrs=back,
        src_indices=slots(0, 5),
        dst_indices=slots(7, 2),
        layer_id=2,
        page_size=PAGE,
    )
    assert np.array_equal(back[0][slots(7, 2)], keys[2][slots(3, 1)])
    assert np.array_equal(back[1][slots(7, 2)], values[2][slots(3, 1)])
    assert not back[0][slots(0, 1, 3)].any()


def test_rows_are_copied_token_by_token() -> None:
    keys, target = device_pool(1), [np.zeros((40, 2, 8)) for _ in range(LAYERS)]
    plugin.transfer_kv_direct(keys, target, slots(2), slots(6), PAGE)
    assert all(np.array_equal(new[slots(6)], old[slots(2)]) for new, old in zip(target, keys, strict=True))


@pytest.mark.parametrize("is_neox", [True, False])
def test_the_rotary_embedding_turns_pairs_by_their_angle(is_neox: bool) -> None:
    angles = np.array([[0.0, 0.0], [0.3, 1.1]])
    cache = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    query = np.random.default_rng(3).normal(size=(1, 8))  # two heads of four
    before, key = query.copy(), query.copy()
    plugin.rotary_embedding(np.array([1]), query, key, 4, cache, is_neox)
    pairs = [(0, 2), (1, 3)] if is_neox else [(0, 1), (2, 3)]
    for head in (0, 4):
        for (a, b), angle in zip(pairs, angles[1], strict=True):
            turned = complex(before[0, head + a], before[0, head + b]) * np.exp(1j * angle)
            assert np.allclose([query[0, head + a], query[0, head + b]], [turned.real, turned.imag])
    assert np.array_equal(key, query)


def test_part_of_a_wider_row_is_turned_in_place() -> None:
    wide = np.ones((2, 12))
    query = wide[:, :8]
    cache = np.array([[0.0, 1.0]])  # a quarter turn of the first two entries of each head
    plugin.rotary_embedding(np.array([0, 0]), query, wide[:, 8:].copy(), 4, cache, True)
    assert wide[0].tolist() == [-1, 1, 1, 1, -1, 1, 1, 1, 1, 1, 1, 1]


class Ack(NamedTuple):
    """As the engine's."""

    start_event: object
    finish_event: object
    node_ids: list[int]


def test_a_late_end_is_not_done_at_once_and_comes() -> None:
    ack = plugin.late(Ack, 0.05)("start", "finish", [7])
    assert (ack.start_event, ack.node_ids) == ("start", [7])
    assert not plugin.late(Ack, 60.0)("start", "finish", []).finish_event.query()
    ack.finish_event.synchronize()
    assert ack.finish_event.query()


def test_pools_are_never_pinned() -> None:
    class Pool:
        pin_memory = plugin.Unpinned()

    pool = Pool()
    pool.pin_memory = True
    assert pool.pin_memory is False


@pytest.mark.parametrize("module", [plugin, torchvision_stand_in])
def test_what_runs_in_the_engine_needs_nothing_of_tierfuzz(module: Any) -> None:
    tree = ast.parse(inspect.getsource(module))
    names = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    names += [alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names]
    assert [name for name in names if name.startswith("tierfuzz")] == []


def test_every_name_of_the_stand_in_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    spec = importlib.util.spec_from_file_location("torchvision", Path(torchvision_stand_in.__file__))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "torchvision", module)
    spec.loader.exec_module(module)
    names: dict[str, Any] = {}
    exec(
        "import torchvision.transforms.v2.functional as F\n"
        "from torchvision.io import decode_jpeg\n"
        "from torchvision.transforms import InterpolationMode\n"
        "mode = InterpolationMode.BICUBIC\n"
        "class Own(InterpolationMode): pass\n"
        "F.resize(decode_jpeg(b''), mode)",
        names,
    )
    for name in [name for name in sys.modules if name.startswith("torchvision.")]:
        monkeypatch.delitem(sys.modules, name)
    assert names["mode"] is names["InterpolationMode"]

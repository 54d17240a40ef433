"""Prometheus text, as a real engine wrote it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierfuzz.worker.prometheus import read_metrics

RECORDED = (Path(__file__).parent.parent / "recordings" / "metrics-0.5.17.txt").read_text()


def test_the_recorded_metrics_have_the_figures_of_their_description() -> None:
    found = read_metrics(RECORDED)
    expected = {
        "sglang:evicted_tokens_total": 64480,
        "sglang:load_back_tokens_total": 7056,
        "sglang:cached_tokens_total{cache_source=device}": 17744,
        "sglang:cached_tokens_total{cache_source=host}": 7056,
        "sglang:cached_tokens_total": 24800,
        "sglang:hicache_host_used_tokens": 1952,
        "sglang:hicache_host_total_tokens": 2064,
        "sglang:kv_available_tokens": 32,
        "sglang:kv_evictable_tokens": 992,
        "sglang:num_running_reqs": 0,
    }
    assert {name: found[name] for name in expected} == expected
    assert not [name for name in found if "_bucket" in name]


def test_samples_of_several_ranks_are_summed() -> None:
    text = '# TYPE a gauge\na{tp_rank="0"} 2\na{tp_rank="1"} 3\n'
    assert read_metrics(text) == {"a": 5}


def test_a_total_beside_its_parts_is_not_counted_twice() -> None:
    text = '# TYPE a_total counter\na_total{cache_source="host"} 2\na_total{cache_source="total"} 2\n'
    assert read_metrics(text) == {
        "a_total": 2,
        "a_total{cache_source=host}": 2,
        "a_total{cache_source=total}": 2,
    }


def test_what_is_no_prometheus_text_is_refused() -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_metrics("<html>not found</html>")


def test_levels_of_one_rank_are_not_those_of_the_worker() -> None:
    text = '# TYPE level gauge\nlevel{dp_rank="0"} 3.0\nlevel{dp_rank="1"} 4.0\nlevel{other="x"} 5.0\n'
    assert [read_metrics(text, rank)["level"] for rank in (None, 0, 1)] == [12.0, 8.0, 9.0]

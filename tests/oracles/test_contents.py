"""Groups of answers are held against matched groups, by odds and by the engine's own noise."""

from __future__ import annotations

import pytest

from tierfuzz.oracles.contents import Comparison, Figures, Served, findings_of
from tierfuzz.oracles.odds import fisher

FIGURES = Figures(cold=0.0, early=2.4, late=2.0, device=0.4, prefilled=0.0)


def answers(kind: str, served: Served, apart: float, number: int) -> list[Comparison]:
    """So many alike."""
    return [Comparison(kind, served, apart, True)] * number


def outcomes(seen: list[Comparison]) -> dict[str, str]:
    """Outcome of each question; the worst where one is asked twice."""
    found: dict[str, str] = {}
    for one in findings_of(FIGURES, seen):
        if found.get(one.question) != "differs":
            found[one.question] = one.outcome
    return found


def test_odds_are_those_of_fishers_exact_test() -> None:
    assert fisher(3, 4, 1, 4) == pytest.approx(17 / 70)
    assert fisher(0, 10, 0, 10) == 1.0
    assert fisher(109, 123, 0, 123) < 1e-40


def test_the_more_in_the_control_the_likelier_is_chance() -> None:
    odds = [fisher(10, 20, control, 20) for control in range(11)]
    assert odds == sorted(odds)


def test_a_page_finished_by_an_output_is_found() -> None:
    seen = answers("at", "host", 1.5, 20) + answers("before", "host", 0.3, 20)
    seen += answers("at", "device", 0.4, 20) + answers("after", "device", 0.4, 20)
    found = outcomes(seen)
    assert found["continued from host, last output finishes a page"] == "differs"
    assert found["continued from host, last output elsewhere"] == "equal"


def test_noise_of_this_run_is_no_finding() -> None:
    seen = answers("at", "host", 1.5, 20) + answers("before", "host", 0.3, 20)
    seen += answers("at", "device", 1.4, 1) + answers("after", "device", 0.4, 20)
    assert set(outcomes(seen).values()) == {"equal"}


def test_two_answers_are_never_enough() -> None:
    seen = answers("at", "host", 1.5, 2) + answers("before", "host", 0.0, 5000)
    found = outcomes(seen + answers("at", "device", 0.0, 5000))
    assert found["continued from host, last output finishes a page"] == "unknown"


def test_without_controls_it_is_unknown() -> None:
    seen = answers("at", "host", 1.5, 20) + answers("at", "device", 0.1, 20)
    assert outcomes(seen)["continued from host, last output finishes a page"] == "unknown"


def test_load_is_judged_to_the_last_bit() -> None:
    seen = answers("traffic", "host", 0.1, 30) + answers("traffic", "host", 0.0, 300)
    seen += answers("traffic", "fresh", 0.0, 300) + answers("quiet", "host", 0.0, 300)
    found = outcomes(seen + answers("traffic", "device", 0.01, 300))
    assert found["beside decodes, from host"] == "differs"
    assert found["beside decodes, from device"] == "equal"


def test_a_rate_under_load_is_held_against_what_was_computed_beside_it() -> None:
    seen = answers("traffic", "host", 0.1, 100) + answers("traffic", "fresh", 0.1, 100)
    assert outcomes(seen)["beside decodes, from host"] == "equal"


def test_figures_say_whether_anything_can_be_seen() -> None:
    assert FIGURES.enough
    assert not Figures(0.0, 2.4, 1.0, 0.4, 0.0).enough
    assert not Figures(0.0, 0.0, 0.0, 0.0, 0.0).enough

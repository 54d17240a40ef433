"""What runs of one program say together."""

from __future__ import annotations

import pytest

from tierfuzz.errors import ExitCode
from tierfuzz.replayed import Replayed, ending

MISS, OTHER = {"host-miss"}, {"split-sum"}


def replayed(
    *failed: set[str], held: set[str] = MISS, accused: tuple[str, ...] = (), error: str = ""
) -> Replayed:
    """Runs that failed so; in each of them checks of `held` were made and held."""
    made = Replayed(max(3, len(failed)), accused, error=error)
    for one in failed:
        made.add(one, held)
    return made


@pytest.mark.parametrize(
    ("runs", "lines", "code"),
    [
        (replayed(set(), set()), ["FIXED: 0 of 2 runs violated an oracle"], ExitCode.HELD),
        (
            replayed(set(), held=MISS, accused=("host-miss",)),
            ["FIXED: 0 of 1 runs violated an oracle"],
            ExitCode.HELD,
        ),
        (
            replayed(MISS, MISS | OTHER),
            ["FAILED 2 of 2: host-miss", "FLAKY 1 of 2: split-sum"],
            ExitCode.VIOLATION,
        ),
        (replayed(set(), MISS, set()), ["FLAKY 1 of 3: host-miss"], ExitCode.VIOLATION),
        (
            replayed(set(), held=OTHER, accused=("host-miss",)),
            ["UNPROVED: no violation in 1 runs, but host-miss was not asked in any run"],
            ExitCode.VACUOUS,
        ),
        (
            replayed(set(), held=set()),
            ["UNPROVED: no violation in 1 runs, but no check could be made"],
            ExitCode.VACUOUS,
        ),
        (replayed(error="it died"), ["ERROR after 0 of 3 runs: it died"], ExitCode.ENVIRONMENT),
        (
            replayed(MISS, error="it died"),
            ["FAILED 1 of 1: host-miss", "ERROR after 1 of 3 runs: it died"],
            ExitCode.VIOLATION,
        ),
        (replayed(set(), error="it died"), ["ERROR after 1 of 3 runs: it died"], ExitCode.ENVIRONMENT),
    ],
)
def test_the_words_and_the_exit_code_agree(runs: Replayed, lines: list[str], code: ExitCode) -> None:
    assert (ending(runs), runs.exit_code) == (lines, code)

"""README.txt: what is in the folder and what to do with it, in a few lines."""

from __future__ import annotations

from collections.abc import Sequence

from tierfuzz.oracles.registry import ORACLES
from tierfuzz.program import Program, Restart
from tierfuzz.verdict import Verdict

TEXT = """{what}

1. Start the workers: launch.txt has the command of each.
2. python repro.py            exits 1 when the bug shows, 0 when it does not, 3 when a worker is not reachable
                              (needs httpx, pyzmq and msgspec only); it runs the program up to five times:
                              --times 20 for what depends on timing, or on what the worker has done before
   or: bash curl.sh           the same requests by cURL, without a judgement
   or: tierfuzz replay .      starts workers of its own and asks every oracle

verdict.txt          what was expected, what events claim, what the reply said, and why
timeline.txt         everything that happened, in order, with the tiers of the pages
program.json         the program, for tierfuzz; verdicts.json: what was violated
test_regression.py   a pytest file that fails as long as the bug is there (needs tierfuzz)
{notes}"""
RESTARTS = "\nThe program restarts a worker: repro.py and curl.sh can only flush it there.\n"
RANKS = "\nThe workers have ranks: tierfuzz replays this; launch.txt, repro.py and curl.sh are left out.\n"
CONSUMER = (
    "\nThe consumer {name} was judged too: tierfuzz replays that; repro.py and curl.sh know workers only.\n"
)
PLANTS = "\nThe bug was planted ({plants}): without the plant nothing may show.\n"


def readme_text(program: Program, verdicts: Sequence[Verdict]) -> str:
    """For whoever opens the folder first."""
    found = list(dict.fromkeys(verdict.oracle for verdict in verdicts if verdict.is_violation))
    known = [f"{oracle}: {ORACLES[oracle].explanation}" for oracle in found if oracle in ORACLES]
    notes = RESTARTS if any(isinstance(operation, Restart) for operation in program.operations) else ""
    notes += PLANTS.format(plants=", ".join(program.fleet.plants)) if program.fleet.plants else ""
    notes += CONSUMER.format(name=program.fleet.consumer) if program.fleet.consumer else ""
    notes += RANKS if program.fleet.ranks > 1 else ""
    return TEXT.format(what="\n".join(known) or "A program of tierfuzz.", notes=notes)

"""`python -m tierfuzz.sim`: one simulated worker."""

from __future__ import annotations

import sys

from tierfuzz.errors import TierfuzzError
from tierfuzz.sim.options import command


def main() -> None:
    """Run the command; errors of ours become one line and their exit code."""
    try:
        command(prog_name="python -m tierfuzz.sim")
    except TierfuzzError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None


if __name__ == "__main__":
    main()

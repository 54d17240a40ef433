"""`python -m tierfuzz`: the command line."""

from tierfuzz.cli import main

if __name__ == "__main__":
    main(prog_name="tierfuzz")

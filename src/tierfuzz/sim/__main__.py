"""`python -m tierfuzz.sim`: start one simulated worker."""

from tierfuzz.sim.options import command

if __name__ == "__main__":
    command(prog_name="tierfuzz sim")

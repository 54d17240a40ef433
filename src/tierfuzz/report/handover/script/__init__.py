"""The parts of repro.py: real modules, joined into one script that needs no tierfuzz (see ..repro).

They import nothing but the standard library, httpx, zmq, msgspec and one another.
"""

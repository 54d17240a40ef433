"""Preflight of a running worker: what was seen of it, and whether a run on it would prove anything."""

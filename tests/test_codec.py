"""Payloads of both wire forms, as engines send them and as they must not be."""

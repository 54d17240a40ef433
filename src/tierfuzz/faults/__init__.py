"""Planted faults: each shows that an oracle bites. Sources are T numbers of known public bugs."""

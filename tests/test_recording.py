"""Recordings are read as typed records, refused where they are wrong, and written back the same."""

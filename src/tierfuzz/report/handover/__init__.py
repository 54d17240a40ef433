"""What a violation leaves: a folder that shows it again, with and without tierfuzz (docs/handover.md)."""

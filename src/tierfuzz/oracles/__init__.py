"""Oracles: what is checked, and the judge that feeds them (issue 2, item 7)."""

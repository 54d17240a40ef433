"""Consumers of events: routers and indexes as systems under test, behind one small protocol."""

"""Routers and indexes of others as they run: their processes, their sockets, and what they answer."""

"""Drivers of one live worker: process, HTTP, event sockets, rest."""

"""tierfuzz: a stateful fuzz tester for KV caches with tiers."""

__version__ = "0.1.0"

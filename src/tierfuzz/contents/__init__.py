"""Trials that compare answers from the cache with cold ones, on one live worker."""

"""The contract forecast: what must, may and must not be where, from the operations alone (reference 6.2)."""

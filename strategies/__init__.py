"""Every Hypothesis strategy of tierfuzz, imported as tierfuzz.strategies."""

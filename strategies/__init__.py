"""Every Hypothesis strategy of tierfuzz."""

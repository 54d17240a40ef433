"""Known defects as minimal programs against the profiles of the step model (reference 7 and 9)."""

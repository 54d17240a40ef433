"""The step model: one worker's tiers and scheduler as pure state; the simulated worker runs on it."""

"""Why: what goes with a verdict or a change point, from everything that was measured of both sides."""

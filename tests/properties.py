"""Hypothesis with the settings of these tests. Import it from here: tests without properties then do without it."""

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

__all__ = ["HealthCheck", "Phase", "given", "settings", "st"]

# The same examples each time, on a slow machine too: a run of the tests says something about the change it is of.
settings.register_profile("tests", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")

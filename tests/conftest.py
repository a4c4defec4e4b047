"""Hypothesis profiles, and what every test may ask for."""

import os

from hypothesis import HealthCheck, settings

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

# quick is for the desk, ci for every change, long for `.ci/run fuzz`. In CI all are derandomized: a red run is a fact
# about the change. At the desk `long` looks somewhere else each time.
settings.register_profile("quick", max_examples=25, derandomize=True, deadline=None, suppress_health_check=_QUIET)
settings.register_profile("ci", max_examples=100, derandomize=True, deadline=None, suppress_health_check=_QUIET)
settings.register_profile(
    "long", max_examples=500, derandomize="CI" in os.environ, deadline=None, suppress_health_check=_QUIET
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

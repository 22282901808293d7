"""How many examples property tests try: 20, or 60 with `HYPOTHESIS_PROFILE=ci`; `@few` for those whose examples take long."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

__all__ = ["few"]

# Other work shares the cores: neither an example nor the making of one has a limit by the clock.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]}
settings.register_profile("quick", max_examples=20, **_COMMON)
settings.register_profile("ci", max_examples=60, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

few = settings(max_examples=min(40, settings().max_examples))

"""Hypothesis explores on a developer's machine and repeats itself in CI."""

import os

from hypothesis import settings

settings.register_profile("explore", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "explore")
